# Escrow counters against hostile roles, owners and triggers: no code of a stranger runs with other rights, no part is lost,
# no value is shown to a role that may not read it, and a table whose folds fail delays no other.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Protocol;
use Server;

my $node = start_server("interlock.sweeper = off\nmax_prepared_transactions = 5\n");
$node->safe_psql('postgres', q(
CREATE ROLE mallory; CREATE ROLE clerk;
GRANT CREATE ON SCHEMA public TO mallory;
));

# A table of the role with one counter, 10 in the row and 3 taken by a part.
sub stocked
{
    my ($table, $more) = @_;
    $node->safe_psql('postgres', "CREATE TABLE $table (id int PRIMARY KEY, stock int NOT NULL" . ($more // '') . ');'
        . "INSERT INTO $table VALUES (1, 11); SELECT interlock.enable_escrow('$table', 'stock'), interlock.adjust('$table', 1, 'stock', -1);");
    $node->safe_psql('postgres', "SELECT interlock.adjust('$table', 1, 'stock', -3)");
    return;
}
sub value { return $node->safe_psql('postgres', "SELECT interlock.escrow_value('$_[0]', 1, 'stock')"); }
sub error_of { my (undef, undef, $error) = $node->psql('postgres', "\\set VERBOSITY verbose\n$_[0]"); return $error; }

# --- crashes
$node->safe_psql('postgres', q(CREATE TABLE priced (id int PRIMARY KEY, price numeric(8,2) NOT NULL); INSERT INTO priced VALUES (1, 1);
SELECT interlock.enable_escrow('priced', 'price'); ALTER TABLE priced DISABLE TRIGGER ALL;
ALTER TABLE priced ALTER price DROP NOT NULL; UPDATE priced SET price = NULL;));
is($node->safe_psql('postgres', "SELECT interlock.escrow_value('priced', 1, 'price') IS NULL"), 't', 'a null number has no value');
$node->safe_psql('postgres', q(CREATE TABLE strange (id int PRIMARY KEY, price numeric(8,2) NOT NULL); INSERT INTO strange VALUES (1, 'NaN')));
like(error_of("SELECT interlock.enable_escrow('strange', 'price')"), qr/55000/, 'NaN is outside of all limits');

# --- rights
$node->safe_psql('postgres', q(
SET ROLE mallory;
CREATE TABLE m (id int PRIMARY KEY, stock int NOT NULL);
INSERT INTO m VALUES (1, 9);
SELECT interlock.enable_escrow('m', 'stock'), interlock.adjust('m', 1, 'stock', -1);
CREATE TABLE ran_as (role name);
GRANT INSERT ON ran_as TO PUBLIC;
CREATE FUNCTION spy(int) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN INSERT INTO public.ran_as VALUES (current_user); RETURN true; END$$;
CREATE DOMAIN spied AS int CHECK (public.spy(VALUE));
));
$node->safe_psql('postgres', "SET ROLE mallory; SELECT interlock.adjust('m', 1, 'stock', -1)");
for my $type (qw(spied bigint))
{
    like(error_of("ALTER TABLE m ALTER id TYPE $type"), qr/0A000/, 'the type of a key cannot be changed');
}
like(error_of('ALTER TABLE m DROP id'), qr/2BP01/, 'nor can it be dropped');
# but with triggers that are made by hand, as those of a restored dump are
$node->safe_psql('postgres', q(
SET ROLE mallory;
DO $$ DECLARE t record; BEGIN
    FOR t IN SELECT tgname, pg_get_triggerdef(oid) AS definition FROM pg_trigger WHERE tgrelid = 'm'::regclass AND NOT tgisinternal LOOP
        EXECUTE format('DROP TRIGGER %I ON m', t.tgname);
        EXECUTE t.definition;
        EXECUTE format('ALTER TABLE m ENABLE ALWAYS TRIGGER %I', t.tgname);
    END LOOP;
END $$;
ALTER TABLE m ALTER id TYPE spied));
$node->psql('postgres', "SELECT interlock.fold_escrow('m')");
is($node->safe_psql('postgres', "SELECT count(*) FROM ran_as WHERE role <> 'mallory'"), 0, 'the type of a key runs no code as the role that folds');
$node->psql('postgres', q(SET ROLE mallory; ALTER TABLE m ALTER id TYPE int));
is($node->safe_psql('postgres', "SELECT interlock.escrow_value('m', 1, 'stock')"), 7, 'and the parts are there when it is an integer again');

stocked('shop', ', note text, CHECK (stock > 8)');
$node->safe_psql('postgres', 'GRANT UPDATE (note) ON shop TO clerk; GRANT SELECT (stock) ON shop TO clerk');
my $seller = Protocol::start($node, 'postgres');
query($seller, 'BEGIN');
query($seller, "SELECT interlock.adjust('shop', 1, 'stock', -1)");
like(error_of("SET ROLE clerk; SET lock_timeout = '1s'; SELECT interlock.set_escrow('shop', 1, 'stock', 1)"), qr/42501/,
    'no role waits at the gate that may not change the column');
query($seller, 'ROLLBACK');
query($seller, 'BEGIN');
query($seller, "SELECT interlock.set_escrow('shop', 1, 'stock', 10)");
is($node->safe_psql('postgres', "SET statement_timeout = '20s'; SELECT outcome FROM interlock.try_adjust('shop', 1, 'stock', -1, '100 ms')"),
    'pending', 'wait limits the wait at the gate');
query($seller, 'ROLLBACK');
like(error_of("SET ROLE clerk; SELECT interlock.fold_escrow('shop', 1)"), qr/42501/, 'a fold of one key tells nobody who may not read keys that it is there');
my $error = error_of("SET ROLE clerk; SELECT interlock.fold_escrow('shop')");
like($error, qr/23514/, 'ESC-10: a fold that a CHECK refuses');
unlike($error, qr/Failing row contains/, 'does not show the row');
is($node->safe_psql('postgres', "SET ROLE clerk; SELECT count(*) FROM interlock.escrow"), 0, 'the view shows no key that the role may not read');
is(value('shop'), 7, 'the part of the fold that was refused is there');

# A key whose hash is that of another would close its gate, or find it closed. With one of 32 bits these two did.
$node->safe_psql('postgres', q(CREATE TABLE rented (id bigint PRIMARY KEY, tenant name NOT NULL, stock int NOT NULL);
SELECT interlock.enable_escrow('rented', 'stock'); INSERT INTO rented VALUES (7233, 'clerk', 100), (263516, 'mallory', 100);
ALTER TABLE rented ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON rented USING (tenant = current_user);
GRANT SELECT, UPDATE ON rented TO clerk, mallory));
my $neighbour = Protocol::start($node, 'postgres');
query($neighbour, "SET ROLE mallory; BEGIN; SELECT interlock.set_escrow('rented', 263516, 'stock', 5)");
is($node->safe_psql('postgres', "SET ROLE clerk; SELECT outcome FROM interlock.try_adjust('rented', 7233, 'stock', -1)"), 'adjusted', 'nobody waits for a row that policies hide');
query($neighbour, 'ROLLBACK');
# Nor has the same key of another table its gate.
$node->safe_psql('postgres', 'CREATE TABLE rented_too (LIKE rented INCLUDING ALL)');
$node->safe_psql('postgres', "SELECT interlock.enable_escrow('rented_too', 'stock'); INSERT INTO rented_too TABLE rented");
is($node->safe_psql('postgres', "BEGIN; SELECT FROM interlock.adjust('rented', 7233, 'stock', 1) a, interlock.adjust('rented_too', 7233, 'stock', 1) b;
    SELECT count(DISTINCT (classid, objid)) FROM pg_locks WHERE pid = pg_backend_pid() AND objsubid = 70"), 2, 'the gate of a counter is one of its table');

$node->safe_psql('postgres', q(CREATE TABLE several (id int PRIMARY KEY, other int NOT NULL UNIQUE, stock int NOT NULL); INSERT INTO several VALUES (1, 2, 9), (2, 1, 9);
GRANT SELECT, UPDATE ON several TO clerk; SELECT interlock.enable_escrow('several', 'stock'), interlock.adjust('several', 1, 'stock', -1)));
$node->safe_psql('postgres', "SELECT interlock.adjust('several', 1, 'stock', -1)");
like(error_of(q(SELECT interlock.fold_escrow('several', '{"other": 1}'::jsonb))), qr/22023/, 'the value of another unique index names no counter');
$node->safe_psql('postgres', 'ALTER TABLE several ENABLE ROW LEVEL SECURITY');
like(error_of("SET ROLE clerk; SELECT interlock.fold_escrow('several')"), qr/42501/, 'a role locks no rows by a fold that policies hide from it');
$node->safe_psql('postgres', q(ALTER TABLE several DROP CONSTRAINT several_pkey, ADD PRIMARY KEY (id, other);
CREATE OR REPLACE TRIGGER zzzz_interlock_escrow_stock BEFORE INSERT OR UPDATE OR DELETE ON several FOR EACH ROW
    EXECUTE FUNCTION interlock_internal.escrow_trigger('stock', '0', '', 'reject', 'false', 'off', '3 1 2', 'id', 'other');
ALTER TABLE several ENABLE ALWAYS TRIGGER zzzz_interlock_escrow_stock));
is($node->safe_psql('postgres', "SELECT interlock.fold_escrow('several')"), 0, 'a counter of a key that had fewer columns is not folded');
like(error_of("SELECT interlock.disable_escrow('several', 'stock')"), qr/55000/, 'nor forgotten');

# Under one transaction id the triggers can be off between two loads of an entry.
stocked('reopened');
$node->safe_psql('postgres', q(BEGIN; ALTER TABLE reopened DISABLE TRIGGER zzzz_interlock_escrow_stock; ALTER TABLE reopened ENABLE ALWAYS TRIGGER zzzz_interlock_escrow_stock;
SELECT interlock.adjust('reopened', 1, 'stock', -1);
ALTER TABLE reopened DISABLE TRIGGER zzzz_interlock_escrow_stock; UPDATE reopened SET stock = 4; ALTER TABLE reopened ENABLE ALWAYS TRIGGER zzzz_interlock_escrow_stock; COMMIT));
is(value('reopened'), 0, 'a number that was set while the triggers were off');
is($node->safe_psql('postgres', "SELECT outcome FROM interlock.try_adjust('reopened', 1, 'stock', -1)"), 'insufficient', 'is what is left');

# VACUUM FULL moves the trigger's row, and a session that began before has the same counter as one that begins after it.
stocked('moved');
my $before_it = Protocol::start($node, 'postgres');
query($before_it, "BEGIN; SELECT interlock.adjust('moved', 1, 'stock', -1)");
$node->safe_psql('postgres', 'VACUUM FULL pg_catalog.pg_trigger');
is($node->safe_psql('postgres', "SELECT outcome FROM interlock.try_adjust('moved', 1, 'stock', -5)"), 'adjusted', 'after VACUUM FULL of the triggers');
is(query($before_it, "SELECT outcome FROM interlock.try_adjust('moved', 1, 'stock', -5)"), 'insufficient', 'nothing is granted twice');
query($before_it, 'COMMIT');
is(value('moved'), 1, 'and what is left is what was not taken');

# A column of the same name is another one.
stocked('dropped');
$node->safe_psql('postgres', 'ALTER TABLE dropped DROP COLUMN stock, ADD COLUMN stock int NOT NULL DEFAULT 3');
like(error_of("SELECT interlock.adjust('dropped', 1, 'stock', -1)"), qr/55000/, 'the triggers of a column are dropped with it');
my (undef, undef, $forgot) = $node->psql('postgres', "SELECT interlock.enable_escrow('dropped', 'stock', 2)");
like($forgot, qr/WARNING:  forgot 1 changes of escrow counters/, 'and one of the same name has none of its parts');
is($node->safe_psql('postgres', "SELECT outcome, remaining FROM interlock.try_adjust('dropped', 1, 'stock', -2)"), 'insufficient|3', 'nor its limits');

# A column that was renamed is the same one (test/t/escrow/names.pl), also for who calls it by its former name.
stocked('renamed');
$node->safe_psql('postgres', "ALTER TABLE renamed RENAME stock TO pieces; SELECT interlock.disable_escrow('renamed', 'stock')");
is($node->safe_psql('postgres', 'SELECT pieces FROM renamed'), 7, 'no part of a column that was renamed is lost');
# One that was dropped has nothing to add them to. In a restored copy its triggers are still there.
stocked('given_up');
$node->safe_psql('postgres', q(DELETE FROM pg_depend WHERE classid = 'pg_trigger'::regclass AND refobjsubid > 0
    AND objid IN (SELECT oid FROM pg_trigger WHERE tgrelid = 'given_up'::regclass);
ALTER TABLE given_up DROP stock, ADD pieces int NOT NULL DEFAULT 0));
like(error_of('UPDATE given_up SET id = 1'), qr/55000: column "stock" of table "given_up", which has escrow counters, is gone/, 'a copy without the column is not written');
(undef, undef, $forgot) = $node->psql('postgres', "SELECT interlock.disable_escrow('given_up', 'stock')");
like($forgot, qr/WARNING:  forgot 1 changes/, 'before its counters are given up, with a loss that is said');
$node->safe_psql('postgres', "UPDATE given_up SET pieces = 2; SELECT interlock.enable_escrow('given_up', 'pieces')");

# Two triggers for one column would take its parts twice.
stocked('forged');
$node->safe_psql('postgres', q(CREATE TRIGGER aaa BEFORE INSERT OR UPDATE OR DELETE ON forged FOR EACH ROW EXECUTE FUNCTION interlock_internal.escrow_trigger('stock', '-1000', '', 'delta', 'false', 'off', '2 1', 'id');
ALTER TABLE forged ENABLE ALWAYS TRIGGER aaa));
like(error_of($_), qr/39P01: triggers "[a-z_]+" and "[a-z_]+" of table "forged" say the same/, "$_: two triggers")
    for 'UPDATE forged SET stock = stock + 1', "SELECT interlock.adjust('forged', 1, 'stock', -1)", "SELECT interlock.enable_escrow('forged', 'stock', 5)",
    "SELECT interlock.disable_escrow('forged', 'stock')", 'DELETE FROM forged';
$node->safe_psql('postgres', 'DROP TRIGGER aaa ON forged; ALTER TRIGGER zzzz_interlock_escrow_stock ON forged RENAME TO aaa');
like(error_of('UPDATE forged SET id = id + 1'), qr/55000: trigger "aaa" of table "forged" does not fire after all others/, 'it fires last');
$node->safe_psql('postgres', 'ALTER TRIGGER aaa ON forged RENAME TO zzzz');
is(value('forged'), 7, 'no part is lost');
$node->safe_psql('postgres', "SELECT interlock.enable_escrow('forged', 'stock', 5, 20); SELECT interlock.disable_escrow('forged', 'stock')");
is($node->safe_psql('postgres', "SELECT stock, (SELECT count(*) FROM pg_trigger WHERE tgrelid = 'forged'::regclass) FROM forged"), '7|0', 'its name can be another one');

# A row that is not written after all: what it would have taken from the counter is there.
$node->safe_psql('postgres', q(CREATE TABLE seat (id int PRIMARY KEY, status text NOT NULL DEFAULT 'open', stock int NOT NULL); INSERT INTO seat VALUES (1, 'open', 10);
SELECT interlock.enable_escrow('seat', 'stock', plain_updates => 'delta');
CREATE FUNCTION refuses(seat, seat) RETURNS text LANGUAGE sql AS $$SELECT 'refused'::text$$;
SELECT interlock.define_transitions('seat', 'status', '{"open": ["used"]}', guards => '{"open": {"used": "refuses(seat,seat)"}}')));
$node->safe_psql('postgres', "SELECT interlock.adjust('seat', 1, 'stock', $_)") for 1, 50;
is($node->safe_psql('postgres', q(SELECT outcome FROM interlock.try_transition('seat', 1, 'open', 'used', '{"stock": 5}'))), 'not_allowed', 'a guard refuses');
is(value('seat'), 61, 'and no part is lost');
is($node->safe_psql('postgres', "SELECT remaining::int, at_most::int FROM interlock.escrow WHERE rel = 'seat'::regclass"), '61|61', 'in memory, too');
$node->safe_psql('postgres', 'ALTER TRIGGER zzz_interlock_transition_status ON seat RENAME TO zzzzz');
like(error_of(q(SELECT outcome FROM interlock.try_transition('seat', 1, 'open', 'used', '{"stock": 5}'))), qr/55000: trigger "zzzz_interlock_escrow_stock" of table "seat" does not fire after all others/, 'not even after one of ours that was renamed');
is($node->safe_psql('postgres', "SELECT finding FROM interlock.advise() WHERE rel = 'seat'::regclass"),
    'trigger "zzzz_interlock_escrow_stock" does not fire after all others: writes are refused', 'which is a finding');
$node->safe_psql('postgres', 'ALTER TRIGGER zzzzz ON seat RENAME TO zzz_interlock_transition_status');
is(value('seat'), 61, 'and no part is lost');
# A trigger of a stranger that is no counter's has no say in the name.
$node->safe_psql('postgres', q(CREATE TABLE named (id int PRIMARY KEY, stock int NOT NULL); INSERT INTO named VALUES (1, 1);
CREATE TRIGGER aaa BEFORE UPDATE ON named FOR EACH ROW EXECUTE FUNCTION interlock_internal.escrow_trigger('stock')));
like(error_of("SELECT interlock.enable_escrow('named', 'stock')"), qr/39P01: trigger "aaa" of table "named" is not as interlock.enable_escrow creates it.*DROP TRIGGER aaa/s, 'it has to go first');
$node->safe_psql('postgres', "DROP TRIGGER aaa ON named; SELECT interlock.enable_escrow('named', 'stock')");
# A reservation of a column that was renamed
$node->safe_psql('postgres', "SELECT interlock.reserve('named', 1, 'stock', 1, '1 h'); ALTER TABLE named RENAME stock TO pieces");
like(error_of("SELECT interlock.disable_escrow('named', 'stock')"), qr/55000: column "pieces" of table "named" has 1 reservation/, 'is not forgotten');
$node->safe_psql('postgres', 'ALTER TABLE named RENAME pieces TO stock; SELECT interlock.cancel_reservation(token) FROM interlock.reservations WHERE rel = \'named\'::regclass');
is(value('named'), 1, 'and can be given back');
# One that has expired keeps nothing back.
$node->safe_psql('postgres', "SELECT interlock.reserve('named', 1, 'stock', 1, '1 us'); ALTER TABLE named RENAME stock TO pieces");
$node->safe_psql('postgres', "SELECT interlock.disable_escrow('named', 'stock')");
is($node->safe_psql('postgres', 'SELECT pieces FROM named'), 1, 'one that has expired is given back with the parts');
is($node->safe_psql('postgres', "SELECT count(*) FROM interlock_internal.escrow_reservation r JOIN interlock_internal.escrow_counter c ON c.id = r.counter WHERE c.rel = 'named'::regclass"), 0, 'and gone');

# --- parts
stocked('kept');
$node->safe_psql('postgres', q(CREATE FUNCTION keeps() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.stock := OLD.stock; RETURN NEW; END';
CREATE TRIGGER keeps BEFORE UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION keeps()));
like(error_of("SELECT interlock.fold_escrow('kept')"), qr/55000/, 'ESC-10: a trigger that keeps the old number makes a fold fail');
is(value('kept'), 7, 'and no part is lost');

stocked('undead');
$node->safe_psql('postgres', q(CREATE FUNCTION keep_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER zzzzz BEFORE DELETE ON undead FOR EACH ROW EXECUTE FUNCTION keep_row()));
like(error_of('DELETE FROM undead'), qr/55000/, 'a later trigger that could keep a deleted row is refused');
is(value('undead'), 7, 'and no part is lost');
like(error_of("SELECT interlock.enable_escrow('undead', 'stock')"), qr/55000/, 'also when counters are enabled');

# While the row itself is written, a trigger writes the same number once more.
stocked('twice');
$node->safe_psql('postgres', q(CREATE FUNCTION writes_again() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    IF pg_trigger_depth() = 1 THEN
        PERFORM interlock.adjust('twice', 1, 'stock', 50);
        UPDATE twice SET stock = NEW.stock;
    END IF;
    RETURN NULL; END$$;
CREATE TRIGGER writes_again AFTER UPDATE ON twice FOR EACH ROW EXECUTE FUNCTION writes_again()));
like(error_of("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT interlock.adjust('twice', 1, 'stock', 1)"), qr/55000/, 'ESC-10: which is a plain update');
is(value('twice'), 7, 'and no part is lost');
$node->safe_psql('postgres', 'DROP TABLE twice');

# Parts that the snapshot does not see have paid for those that it sees.
for my $level ('REPEATABLE READ', 'SERIALIZABLE') {
    $node->safe_psql('postgres', "CREATE TABLE folded (id int PRIMARY KEY, stock int NOT NULL); INSERT INTO folded VALUES (1, 1);
        SELECT interlock.enable_escrow('folded', 'stock'), interlock.adjust('folded', 1, 'stock', -1)");
    query($seller, "BEGIN ISOLATION LEVEL $level");
    query($seller, 'SELECT 1');
    $node->safe_psql('postgres', "SELECT interlock.adjust('folded', 1, 'stock', 10)");
    query($seller, "SELECT outcome FROM interlock.try_adjust('folded', 1, 'stock', -5)") if $level eq 'REPEATABLE READ';
    query($seller, "SELECT interlock.fold_escrow('folded')");
    is($seller->{error}, $level eq 'REPEATABLE READ' ? '40001' : undef, "ESC-9: $level: a fold writes no number outside of the limits");
    query($seller, 'ROLLBACK');
    is(value('folded'), 10, 'and no part is lost');
    $node->safe_psql('postgres', 'DROP TABLE folded');
}

# Two halves are one, and each half rounded is one.
$node->safe_psql('postgres', "CREATE TABLE halved (id int PRIMARY KEY, stock numeric(10, 2) NOT NULL); INSERT INTO halved VALUES (1, 9);
    SELECT interlock.enable_escrow('halved', 'stock', 0.5, 10), interlock.adjust('halved', 1, 'stock', -1)");
$node->safe_psql('postgres', "SELECT interlock.adjust('halved', 1, 'stock', 0.5)") for 1 .. 3;
like(error_of('ALTER TABLE halved ALTER stock TYPE numeric(10, 0)'), qr/0A000/, 'the type of a counter cannot be changed');
# A dump does not have the dependency for which the server refuses it.
$node->safe_psql('postgres', "DELETE FROM pg_depend WHERE classid = 'pg_trigger'::regclass AND refobjid = 'halved'::regclass AND refobjsubid = 2");
$node->safe_psql('postgres', 'ALTER TABLE halved ALTER stock TYPE numeric(10, 0)');
like(error_of($_), qr/55000: a change of an escrow counter has more digits than its column "stock" has now\n.*former type/s, 'a part that the column cannot hold any more')
    for "SELECT interlock.escrow_value('halved', 1, 'stock')", "SELECT interlock.fold_escrow('halved')", "SELECT interlock.set_escrow('halved', 1, 'stock', 3)";
$node->safe_psql('postgres', 'ALTER TABLE halved ALTER stock TYPE numeric(10, 2)');
is($node->safe_psql('postgres', "SELECT interlock.escrow_value('halved', 1, 'stock')"), '9.50', 'is there with the former type');
$node->safe_psql('postgres', "SELECT interlock.fold_escrow('halved'); ALTER TABLE halved ALTER stock TYPE numeric(10, 0)");
is($node->safe_psql('postgres', "SELECT outcome FROM interlock.try_adjust('halved', 1, 'stock', -10)"), 'insufficient', 'and a minimum of 0.5 is 1 with another one');

for my $level ('REPEATABLE READ', 'SERIALIZABLE') {
    stocked('late');
    query($seller, "BEGIN ISOLATION LEVEL $level");
    query($seller, 'SELECT 1');
    $node->safe_psql('postgres', "SELECT interlock.adjust('late', 1, 'stock', -1)");
    query($seller, "SELECT interlock.disable_escrow('late', 'stock')");
    is($seller->{error}, '40001', "$level: disabling does not forget what its snapshot does not see");
    query($seller, 'ROLLBACK');
    is(value('late'), 6, 'and no part is lost');
    query($seller, "BEGIN ISOLATION LEVEL $level");
    query($seller, 'SELECT 1');
    $node->safe_psql('postgres', "INSERT INTO late VALUES (2, 5); SELECT interlock.adjust('late', 2, 'stock', 1)");
    $node->safe_psql('postgres', "SELECT interlock.adjust('late', 2, 'stock', 1)");
    query($seller, 'TRUNCATE late');
    query($seller, 'COMMIT');
    $node->safe_psql('postgres', 'INSERT INTO late VALUES (2, 1)');
    is($node->safe_psql('postgres', "SELECT interlock.escrow_value('late', 2, 'stock')"), 1, "$level: TRUNCATE ends counters that its snapshot does not see");
    $node->safe_psql('postgres', 'DROP TABLE late');
}

stocked('child', ', area int NOT NULL DEFAULT 1');
$node->safe_psql('postgres', q(
CREATE TABLE parent (id int NOT NULL, stock int NOT NULL, area int NOT NULL) PARTITION BY LIST (area);
CREATE TABLE sibling PARTITION OF parent FOR VALUES IN (2);
ALTER TABLE parent ATTACH PARTITION child FOR VALUES IN (1)));
like(error_of("SELECT interlock.adjust('child', 1, 'stock', -1)"), qr/55000/, 'a table that became a partition');
like(error_of('UPDATE parent SET area = 2'), qr/55000/, 'no row leaves it without its parts');
is(value('child'), 7, 'they are there');
$node->safe_psql('postgres', "SELECT interlock.disable_escrow('child', 'stock'); UPDATE parent SET area = 2");
is($node->safe_psql('postgres', 'SELECT stock FROM sibling'), 7, 'disabling folds them');

# --- the range of the type
for my $type (['smallint', 32767], ['int', 2147483647], ['bigint', '9223372036854775807'], ['numeric(4,2)', '99.99']) {
    my ($name, $most) = @$type;
    $node->safe_psql('postgres', "CREATE TABLE sized (id int PRIMARY KEY, stock $name NOT NULL); INSERT INTO sized VALUES (1, 2);
        SELECT interlock.enable_escrow('sized', 'stock', -1000000), interlock.adjust('sized', 1, 'stock', -1)");
    $node->safe_psql('postgres', "SELECT interlock.set_escrow('sized', 1, 'stock', least($most - 1.0, 1000000000000000000)::numeric)");
    my @outcomes = map { $node->safe_psql('postgres', "SELECT outcome FROM interlock.try_adjust('sized', 1, 'stock', 1)") } 1 .. 2;
    is("@outcomes", $name eq 'bigint' ? 'adjusted adjusted' : 'adjusted insufficient', "$name: nothing is granted that the column cannot hold");
    $node->safe_psql('postgres', "SELECT interlock.fold_escrow('sized')");
    is($node->safe_psql('postgres', "SELECT stock = interlock.escrow_value('sized', 1, 'stock') FROM sized"), 't', 'so a fold writes it');
    $node->safe_psql('postgres', 'DROP TABLE sized');
}

# Parts are read in no order of time: their sums on the way may be larger than any number that was there. 9e18 in the row, ten
# times 1e18 taken; and twenty times 9e17 given back in the order of the parts before ten times 9e17 are taken.
$node->safe_psql('postgres', q(CREATE TABLE big (id int PRIMARY KEY, stock bigint NOT NULL); INSERT INTO big VALUES (1, 9200000000000000000), (2, 0);
SELECT interlock.enable_escrow('big', 'stock', -1000000000000000000); SELECT interlock.adjust('big', 1, 'stock', -1), interlock.adjust('big', 2, 'stock', 1)));
$node->safe_psql('postgres', "SELECT interlock.adjust('big', 1, 'stock', 1), interlock.adjust('big', 2, 'stock', -1)"); # which enters them into memory
my ($holds_big, $sells) = map { Protocol::start($node, 'postgres') } 1, 2;
query($holds_big, 'BEGIN; SELECT FROM big FOR UPDATE');
query($sells, "SELECT interlock.adjust('big', 1, 'stock', -1000000000000000000)") for 1 .. 10;
query($sells, "SELECT interlock.adjust('big', 2, 'stock', ${_}00000000000000000)") for (9) x 10, (-9) x 10, (9) x 10;
query($holds_big, 'COMMIT');
# In another order: those that give first
$node->safe_psql('postgres', q(CREATE TEMP TABLE p AS SELECT * FROM interlock_internal.escrow_part WHERE counter = (SELECT id FROM interlock_internal.escrow_counter WHERE rel = 'big'::regclass AND key = '{2}');
DELETE FROM interlock_internal.escrow_part WHERE counter IN (SELECT counter FROM p);
INSERT INTO interlock_internal.escrow_part SELECT counter, row_number() OVER (ORDER BY amount DESC), amount, reserved FROM p));
sub big { return $node->safe_psql('postgres', "SELECT interlock.escrow_value('big', id, 'stock') FROM big ORDER BY id"); }
is(big(), "-800000000000000000\n9000000000000000000", 'numbers whose parts add up beyond 64 bits');
$node->restart;
is($node->safe_psql('postgres', "SELECT outcome FROM big, interlock.try_adjust('big', id, 'stock', 1) ORDER BY id"), "adjusted\nadjusted", 'are loaded');
is($node->safe_psql('postgres', "SELECT outcome FROM generate_series(1, 11) g, interlock.reserve('big', 2 + 0 * g, 'stock', 900000000000000000, '1 us')"), join("\n", ('reserved') x 11), 'and reserved');
is($node->safe_psql('postgres', "SELECT count(*) FROM interlock.reservations WHERE rel = 'big'::regclass"), 11, 'eleven times');
$node->safe_psql('postgres', "SELECT interlock.fold_escrow('big')");
is($node->safe_psql('postgres', 'SELECT stock FROM big ORDER BY id'), "-799999999999999999\n9000000000000000001", 'they are folded');
is($node->safe_psql('postgres', "SELECT count(*) FROM interlock.reservations WHERE rel = 'big'::regclass"), 0, 'what has expired is given back');
$node->safe_psql('postgres', "SELECT interlock.set_escrow('big', 1, 'stock', 5); DELETE FROM big WHERE id = 2; SELECT interlock.disable_escrow('big', 'stock'); DROP TABLE big");

# An index that was made anew by another session, while this one waits for its table
stocked('reindexed');
my ($reindexes, $reads) = map { Protocol::start($node, 'postgres') } 1, 2;
query($reads, "SELECT interlock.escrow_value('reindexed', 1, 'stock')");
query($reindexes, 'BEGIN; LOCK TABLE interlock_internal.escrow_part');
Protocol::send_query($reads, "SELECT interlock.escrow_value('reindexed', 1, 'stock')");
$node->poll_query_until('postgres', "SELECT cardinality(pg_blocking_pids($reads->{pid})) > 0") or die 'does not wait';
query($reindexes, "CREATE INDEX made_anew ON interlock_internal.escrow_part (counter)");
query($reindexes, "DROP INDEX interlock_internal.escrow_part_counter; ALTER INDEX interlock_internal.made_anew RENAME TO escrow_part_counter; COMMIT");
is(Protocol::answer($reads), 7, 'an index that was made anew is the one that is read') || diag($reads->{error});

# A number that the transaction has set is shown as it is, or not at all.
stocked('set_anew');
$node->safe_psql('postgres', "BEGIN; SELECT interlock.adjust('set_anew', 1, 'stock', -1); SELECT interlock.set_escrow('set_anew', 1, 'stock', 90); COMMIT");
is($node->safe_psql('postgres', "SELECT remaining, at_most FROM interlock.escrow WHERE rel = 'set_anew'::regclass"), '|', 'what was dropped from memory is not shown');
is(value('set_anew'), 90, 'and the number is right');

# Nor is a range of other triggers, or of another file of the table.
$node->safe_psql('postgres', "SELECT interlock.adjust('set_anew', 1, 'stock', -1)") for 1, 2;
is($node->safe_psql('postgres', "SELECT remaining::int, at_most::int FROM interlock.escrow WHERE rel = 'set_anew'::regclass"), '88|88', 'what is in memory is shown');
$node->safe_psql('postgres', $_) for 'VACUUM FULL set_anew', "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT interlock.adjust('set_anew', 1, 'stock', -5); COMMIT";
is($node->safe_psql('postgres', "SELECT remaining, at_most FROM interlock.escrow WHERE rel = 'set_anew'::regclass"), '|', 'but not after a rewrite of the table');
is(value('set_anew'), 83, 'and the number is right');

# A crash would empty an unlogged table, and not the journal.
stocked('unlogged');
$node->safe_psql('postgres', 'ALTER TABLE unlogged SET UNLOGGED');
like(error_of("SELECT interlock.adjust('unlogged', 1, 'stock', -1)"), qr/55000: table "unlogged" has become unlogged.*SET LOGGED/s, 'no changes of an unlogged table');
is($node->safe_psql('postgres', "SELECT finding FROM interlock.advise() WHERE rel = 'unlogged'::regclass"), 'the table has become unlogged: inserts, and changes of its escrow counters, are refused', 'which is a finding');
like(error_of('INSERT INTO unlogged VALUES (2, 3)'), qr/55000: table "unlogged" has become unlogged/, 'nor new rows, which could get the parts of others after a crash');
$node->safe_psql('postgres', 'ALTER TABLE unlogged SET LOGGED');
is(value('unlogged'), 7, 'and no part is lost');

# Another database of the same OID, and a copy of the same template, has the same counters. No part of the first is granted there.
$node->safe_psql('postgres', 'CREATE DATABASE pattern');
$node->safe_psql('pattern', q(CREATE EXTENSION pg_interlock; CREATE TABLE item (id int PRIMARY KEY, n int NOT NULL); SELECT interlock.enable_escrow('item', 'n');
INSERT INTO item VALUES (1, 100); SELECT interlock.adjust('item', 1, 'n', -1)));
$node->safe_psql('pattern', q(SELECT interlock.adjust('item', 1, 'n', 1); SELECT interlock.fold_escrow('item')));
$node->safe_psql('postgres', 'CREATE DATABASE copied TEMPLATE pattern OID 90001');
$node->safe_psql('copied', "SELECT interlock.adjust('item', 1, 'n', 900)");
$node->safe_psql('postgres', $_) for 'DROP DATABASE copied (FORCE)', 'CREATE DATABASE copied TEMPLATE pattern OID 90001';
is($node->safe_psql('copied', "SELECT outcome FROM interlock.try_adjust('item', 1, 'n', -500)"), 'insufficient', 'a database that was dropped leaves no counters in memory');
is($node->safe_psql('copied', "SELECT interlock.escrow_value('item', 1, 'n')"), 100, 'for another one of its OID');
$node->safe_psql('postgres', $_) for 'DROP DATABASE copied (FORCE)', 'DROP DATABASE pattern (FORCE)';

# --- one table does not stop the folds of others
$node->safe_psql('postgres', q(
SET ROLE mallory;
CREATE TABLE many (id int PRIMARY KEY, stock int NOT NULL);
INSERT INTO many SELECT i, 9 FROM generate_series(1, 1500) i;
SELECT interlock.enable_escrow('many', 'stock');
SELECT count(interlock.adjust('many', id, 'stock', -1)) FROM many;
));
$node->safe_psql('postgres', q(SET ROLE mallory; SELECT count(interlock.adjust('many', id, 'stock', -1)) FROM many;
CREATE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END';
CREATE TRIGGER refuses BEFORE UPDATE ON many FOR EACH ROW EXECUTE FUNCTION refuses()));
stocked('others');
$node->append_conf('postgresql.conf', 'interlock.sweeper = on');
$node->restart;
$node->safe_psql('postgres', "SELECT interlock.adjust('others', 1, 'stock', -1)");
ok($node->poll_query_until('postgres', 'SELECT stock = 6 FROM others'), 'the sweeper gets past a table whose folds fail');

# --- prepared transactions
$node->safe_psql('postgres', 'DROP TABLE many, m, kept, shop, undead, priced, parent');
my $sweeper = 'FROM interlock.sweeper WHERE database = current_database()';
ok($node->poll_query_until('postgres', "SELECT state = 'idle' $sweeper"), 'the sweeper has no more to do');
my $before = $node->safe_psql('postgres', "SELECT runs $sweeper");
$node->safe_psql('postgres', "BEGIN; SELECT interlock.adjust('others', 1, 'stock', -1); PREPARE TRANSACTION 'sold'");
$node->poll_query_until('postgres', "SELECT runs > $before $sweeper");
$node->safe_psql('postgres', "COMMIT PREPARED 'sold'");
ok($node->poll_query_until('postgres', 'SELECT stock = 5 FROM others'), 'a part that was prepared is folded, though no call wakes the sweeper');

done_testing();
