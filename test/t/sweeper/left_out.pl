# Tables whose triggers catch every cancel, and so end the worker that sweeps them: whatever is swept of others in the same database
# has its turn all the same. One role has such a table of each kind, and the other has what waits.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server('interlock.sweeper = off');

$node->safe_psql('postgres', q(
CREATE ROLE mallory; CREATE ROLE shop;
CREATE SCHEMA m AUTHORIZATION mallory;
CREATE SCHEMA s AUTHORIZATION shop;
SET ROLE mallory;
CREATE FUNCTION m.stubborn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$;
-- Planned for the lock of a row that is not in memory
CREATE FUNCTION m.plans(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
    IF current_setting('application_name') = '' THEN
        LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP;
    END IF;
    RETURN $1; END $$;
));

# The tables of one kind in a schema, with something to sweep
sub fill
{
    my ($role, $schema) = @_;
    $node->safe_psql('postgres', qq(
        SET SESSION AUTHORIZATION $role;
        CREATE TABLE $schema.marked (id int PRIMARY KEY);
        INSERT INTO $schema.marked VALUES (1);
        SELECT interlock.enable_marker('$schema.marked'), interlock.lock_row('$schema.marked', 1, 'anna', '1 ms');
        CREATE TABLE $schema.recorded (id int PRIMARY KEY, n int);
        SELECT interlock.enable_history('$schema.recorded', keep_for => '1 ms');
        INSERT INTO $schema.recorded VALUES (1, 1);
        CREATE TABLE $schema.folded (id int PRIMARY KEY, stock int NOT NULL);
        INSERT INTO $schema.folded VALUES (1, 9);
        SELECT interlock.enable_escrow('$schema.folded', 'stock'), interlock.adjust('$schema.folded', 1, 'stock', -1);
        CREATE TABLE $schema.reserved (id int PRIMARY KEY, stock int NOT NULL);
        INSERT INTO $schema.reserved VALUES (1, 9);
        SELECT interlock.enable_escrow('$schema.reserved', 'stock');
        SELECT interlock.reserve('$schema.reserved', 1, 'stock', 1, '1 ms')));
    return;
}
fill('mallory', 'm'); # they come first
$node->safe_psql('postgres', q(
    SET SESSION AUTHORIZATION mallory;
    CREATE TRIGGER stubborn BEFORE UPDATE ON m.marked FOR EACH ROW EXECUTE FUNCTION m.stubborn();
    CREATE TRIGGER stubborn BEFORE DELETE ON m.recorded_history FOR EACH ROW EXECUTE FUNCTION m.stubborn();
    CREATE TRIGGER stubborn BEFORE UPDATE ON m.folded FOR EACH ROW EXECUTE FUNCTION m.stubborn();
    CREATE TABLE m.child () INHERITS (m.reserved); -- so that it is locked by a statement
    BEGIN; ALTER TABLE m.reserved DISABLE TRIGGER zzzz_interlock_escrow_stock; ALTER TABLE m.reserved ENABLE ALWAYS TRIGGER zzzz_interlock_escrow_stock; COMMIT;
    CREATE INDEX ON m.reserved ((m.plans(1) + stock))
));
fill('shop', 's');
$node->safe_psql('postgres', q(SELECT interlock.define_idempotency_scope('pay', ttl => '1 s', stale_after => '1 s');
    SELECT interlock.idempotency_claim('pay', 'k')));

$node->append_conf('postgresql.conf', 'interlock.sweeper = on');
$node->restart;

sub swept
{
    my ($what, $name) = @_;
    ok($node->poll_query_until('postgres', "SELECT $what"), $name);
    return;
}
$node->wait_for_log(qr/a sweeper worker ended itself/);
swept('lock_status = 0 FROM s.marked', 'the marker of another role is released');
swept("count(*) = 0 FROM interlock.reservations WHERE rel = 's.reserved'::regclass", 'its reservation is given back');
swept('stock = 8 FROM s.folded', 'its part is folded');
swept('count(*) = 0 FROM interlock.idempotency', 'a key that has expired is deleted');
swept('count(*) = 0 FROM s.recorded_history', 'its history is trimmed');
is($node->safe_psql('postgres', 'SELECT lock_status FROM m.marked'), 1, 'a table that ends workers is not swept');
swept("last_error ~ '^table m[.][a-z]+: left out of this run, as a worker was ended before' FROM interlock.sweeper WHERE database = 'postgres'",
    'and the view says so');

# Once it can be swept, it is
$node->safe_psql('postgres', q(CREATE OR REPLACE FUNCTION m.stubborn() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN COALESCE(NEW, OLD); END';
    CREATE OR REPLACE FUNCTION m.plans(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1'));
swept('lock_status = 0 FROM m.marked', 'once it can be swept, it is');
swept('stock = 8 FROM m.folded', 'and so are others');

$node->stop('immediate');
done_testing();
