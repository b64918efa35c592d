# Reservations against hostile roles: a token of another role is worth as much as a wrong one, nobody waits for who has no right to it, the
# view shows what the reader may see, and a role cannot keep the owner of a table from the rows for longer than the owner wants.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Protocol;
use Server;

my $node = start_server("interlock.sweeper = off");
$node->safe_psql('postgres', q(
CREATE ROLE shop; CREATE ROLE clerk; CREATE ROLE trainee; CREATE ROLE mallory; CREATE ROLE reader;
GRANT clerk TO trainee;
GRANT CREATE ON SCHEMA public TO shop, mallory;
SET ROLE shop;
CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL, note text);
INSERT INTO item SELECT i, 9 FROM generate_series(1, 9) i;
SELECT interlock.enable_escrow('item', 'stock');
SELECT count(interlock.adjust('item', i, 'stock', 1)) FROM generate_series(1, 9) i;
GRANT SELECT (id, stock), UPDATE (stock) ON item TO clerk, mallory;
GRANT SELECT ON item TO reader;
));

# As a session of the role: one that a superuser opened would keep a superuser's rights to reservations.
sub as { my ($role, $sql) = @_; my ($status, $out, $error) = $node->psql('postgres', "\\set VERBOSITY verbose\nSET SESSION AUTHORIZATION $role;\n$sql"); return $status == 0 ? $out : $error; }
sub reserve { my ($role, $id, $amount, $ttl) = @_; return as($role, "SELECT token FROM interlock.reserve('item', $id, 'stock', $amount, '" . ($ttl // '1 h') . "', 'cart of $role')"); }

# --- tokens
my $token = reserve('clerk', 1, 4);
like($token, qr/^\d+$/, 'a reservation of one role');
my $wrong = 4711;
my $refused = as('mallory', "SELECT interlock.confirm_reservation($wrong)");
like($refused, qr/IL008: reservation 4711 has expired or ended/, 'a wrong token');
is(as('mallory', "SELECT interlock.confirm_reservation($token)") =~ s/$token/4711/gr, $refused, 'and that of another role get the same error');
is(as('mallory', "SELECT interlock.cancel_reservation($_)"), 'f', 'the same answer') for $wrong, $token;
is(as('mallory', "SELECT interlock.extend_reservation($_, '1 h') IS NULL"), 't', 'from each function') for $wrong, $token;
my $clerk = Protocol::start($node, 'postgres');
query($clerk, 'SET SESSION AUTHORIZATION clerk');
query($clerk, 'BEGIN');
query($clerk, "SELECT interlock.extend_reservation($token, '2 h')");
is(as('mallory', "SET statement_timeout = '20 s'; SELECT interlock.cancel_reservation($token)"), 'f', 'nor does it wait where another role has locked one');
query($clerk, 'COMMIT');
query($clerk, 'BEGIN');
query($clerk, "SELECT interlock.adjust('item', 1, 'stock', -1)");
query($clerk, 'ROLLBACK');
is(as('trainee', "SELECT interlock.extend_reservation($token, '1 h') IS NULL"), 'f', 'a member of the role has it');
is(as('reader', "SELECT interlock.cancel_reservation($token)"), 'f', 'a reader of the table has not');
my @tokens = split /\n/, $node->safe_psql('postgres', "SELECT token FROM generate_series(1, 20) i, interlock.reserve('item', 9, 'stock', 1, i * interval '1 h') r WHERE token IS NOT NULL");
my %seen;
$seen{$_}++ for @tokens;
is(scalar(keys %seen), 10, 'tokens differ');
is((grep { my $one = $_; grep { abs($one - $_) == 1 } @tokens } @tokens), 0, 'and do not follow each other');

# --- rights
like(as('reader', "SELECT interlock.reserve('item', 1, 'stock', 1, '1 h')"), qr/42501/, 'reserving needs UPDATE of the column');
$node->safe_psql('postgres', 'REVOKE UPDATE (stock) ON item FROM clerk');
is(as('clerk', "SELECT interlock.cancel_reservation($token)"), 't', 'giving back does not');
is($node->safe_psql('postgres', "SELECT interlock.escrow_value('item', 1, 'stock')"), 10, 'and is exact');
$node->safe_psql('postgres', 'GRANT UPDATE (stock) ON item TO clerk');
for my $table ('escrow_reservation', 'escrow_part', 'escrow_counter')
{
    like(as('clerk', "SELECT * FROM interlock_internal.$table"), qr/42501/, "$table is closed");
    like(as('clerk', "DELETE FROM interlock_internal.$table"), qr/42501/, 'for writes, too');
}

# --- the view
$token = reserve('clerk', 2, 4);
is(as('clerk', 'SELECT holder, token IS NULL FROM interlock.reservations WHERE key = \'{2}\''), 'cart of clerk|f', 'the role sees its token');
is(as('trainee', 'SELECT count(token) FROM interlock.reservations WHERE key = \'{2}\''), 1, 'so do its members');
is(as('reader', 'SELECT count(*), count(token) FROM interlock.reservations WHERE key = \'{2}\''), '1|0', 'who may read the table sees the reservation');
is(as('mallory', 'SELECT count(*), count(token) FROM interlock.reservations WHERE key = \'{2}\''), '1|0', 'also by columns');
$node->safe_psql('postgres', 'REVOKE SELECT (stock) ON item FROM mallory');
is(as('mallory', 'SELECT count(*) FROM interlock.reservations WHERE key = \'{2}\''), 0, 'others see nothing');
$node->safe_psql('postgres', 'GRANT SELECT (stock) ON item TO mallory; ALTER TABLE item ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON item USING (id <> 2)');
is(as('reader', 'SELECT count(*) FROM interlock.reservations WHERE key = \'{2}\''), 0, 'nor what policies hide');
is(as('clerk', 'SELECT count(token) FROM interlock.reservations WHERE key = \'{2}\''), 1, 'but its own');
is(as('clerk', "SELECT outcome FROM interlock.reserve('item', 2, 'stock', 1, '1 h')"), 'not_found', 'a row that policies hide');
is(as('clerk', "SELECT outcome FROM interlock.reserve('item', 3, 'stock', 1, '1 h')"), 'reserved', 'and one that they show');
is(as('clerk', "SELECT interlock.cancel_reservation(token) FROM interlock.reservations WHERE key = '{3}'"), 't', 'is given back');
$node->safe_psql('postgres', 'ALTER TABLE item DISABLE ROW LEVEL SECURITY');

# The key by which counters go need not be the primary key.
$node->safe_psql('postgres', q(SET ROLE shop;
CREATE TABLE patient (id int PRIMARY KEY DEFERRABLE, ssn text NOT NULL UNIQUE, visits int NOT NULL);
CREATE TABLE member (id int NOT NULL UNIQUE, ssn text PRIMARY KEY, visits int NOT NULL);
INSERT INTO patient VALUES (1, 'SECRET', 9); INSERT INTO member VALUES (1, 'SECRET', 9);
SELECT interlock.enable_escrow(t, 'visits'), interlock.adjust(t, 'SECRET'::text, 'visits', -1) FROM unnest('{patient,member}'::regclass[]) t;
SELECT interlock.reserve(t, 'SECRET'::text, 'visits', 1, '1 h') FROM unnest('{patient,member}'::regclass[]) t;
ALTER TABLE member DROP CONSTRAINT member_pkey, ADD PRIMARY KEY (id);
GRANT SELECT (id, visits) ON patient, member TO mallory));
my $seen = q(SELECT (SELECT count(*) FROM interlock.escrow WHERE rel IN ('patient'::regclass, 'member'::regclass)) + (SELECT count(*) FROM interlock.reservations WHERE rel IN ('patient'::regclass, 'member'::regclass)));
is(as('mallory', $seen), 0, 'nor the key of counters to whom may read the primary key alone');
$node->safe_psql('postgres', 'GRANT SELECT (ssn) ON patient, member TO mallory');
is(as('mallory', $seen), 4, 'but with that key, too');
$node->safe_psql('postgres', 'REVOKE SELECT (visits) ON patient, member FROM mallory');
is(as('mallory', $seen), 0, 'and not without the column');
# Nor are the columns those that have their names by now.
$node->safe_psql('postgres', q(SET ROLE shop;
CREATE TABLE moved (id int NOT NULL, ssn text PRIMARY KEY, visits int NOT NULL);
INSERT INTO moved VALUES (1, 'SECRET', 9);
SELECT interlock.enable_escrow('moved', 'visits'), interlock.adjust('moved', 'SECRET'::text, 'visits', -1), interlock.reserve('moved', 'SECRET'::text, 'visits', 1, '1 h');
ALTER TABLE moved RENAME ssn TO secret; ALTER TABLE moved RENAME id TO ssn;
GRANT SELECT (ssn, visits) ON moved TO mallory));
$seen =~ s/\('patient'::regclass, 'member'::regclass\)/('moved'::regclass)/g;
is(as('mallory', $seen), 0, 'no key by its former name');
$node->safe_psql('postgres', 'GRANT SELECT (secret) ON moved TO mallory; REVOKE SELECT (ssn) ON moved FROM mallory');
is(as('mallory', $seen), 2, 'but by the column that it is');
$node->safe_psql('postgres', 'ALTER TABLE moved RENAME visits TO private; ALTER TABLE moved ADD visits int; REVOKE SELECT ON moved FROM mallory; GRANT SELECT (secret, visits) ON moved TO mallory');
is(as('mallory', $seen), 0, 'nor a counter by its former name');
$node->safe_psql('postgres', q(UPDATE pg_depend SET refobjsubid = 0 WHERE classid = 'pg_trigger'::regclass AND refobjid IN ('patient'::regclass, 'member'::regclass);
GRANT SELECT (visits, ssn, id) ON patient, member TO mallory));
$seen =~ s/\('moved'::regclass\)/('patient'::regclass, 'member'::regclass)/g;
is(as('mallory', $seen), 0, 'nor one of which no columns are recorded, as after a restore');
is(as('shop', $seen), 4, 'but to readers of the table');

# --- the owner of the table
my $lasting = reserve('mallory', 4, 10, '9 years');
like(as('shop', 'DELETE FROM item WHERE id = 4'), qr/55000/, 'a reservation keeps the row');
is(as('shop', "SELECT interlock.extend_reservation($lasting, '1 h') IS NULL"), 't', 'the owner of the table does not extend it');
like(as('shop', "SELECT interlock.confirm_reservation($lasting)"), qr/IL008/, 'or confirm it');
is(as('shop', "SELECT count(*) FROM interlock.reservations r WHERE rel = 'item'::regclass AND key = '{4}' AND interlock.cancel_reservation(r.token)"), 1, 'but cancels it, as the view has its token');
unlike(as('shop', 'DELETE FROM item WHERE id = 4'), qr/ERROR/, 'and deletes the row');

# --- policies that are forced on the owner: statements with them and past them are planned apart, where the rest is the same
$node->safe_psql('postgres', q(
SET ROLE shop;
CREATE TABLE shared_item (id int PRIMARY KEY, tenant text, stock int NOT NULL);
INSERT INTO shared_item VALUES (1, 'a', 20), (2, 'b', 20), (3, 'b', 20);
SELECT interlock.enable_escrow('shared_item', 'stock');
ALTER TABLE shared_item ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON shared_item USING (tenant = current_setting('app.tenant', true))));
my $statements = "SET default_transaction_isolation = 'repeatable read';\nSET search_path = pg_catalog, pg_temp;\nSET app.tenant = 'a';\n";
$token = as('shop', "SET app.tenant = 'b';\nSELECT token FROM interlock.reserve('shared_item', 2, 'stock', 5, '1 h')");
is(as('shop', "${statements}SELECT interlock.set_escrow('public.shared_item', 1, 'stock', 60);\nSELECT interlock.cancel_reservation($token)"), "\nt",
    'a reservation of a hidden row is cancelled after a call that has policies');
is($node->safe_psql('postgres', "SELECT interlock.escrow_value('shared_item', 2, 'stock')"), 20, 'and given back');
my ($out, $error);
$node->psql('postgres', "\\set VERBOSITY verbose\n${statements}SELECT interlock.adjust('public.shared_item', 2, 'stock', -1);\nSELECT interlock.fold_escrow('public.shared_item', 2);\n"
      . "SET SESSION AUTHORIZATION shop;\nSELECT interlock.set_escrow('public.shared_item', 3, 'stock', 7)", stdout => \$out, stderr => \$error);
like($error, qr/P0002/, 'a hidden row is not written after a call past policies');
is($node->safe_psql('postgres', 'SELECT stock FROM shared_item WHERE id = 3'), 20, 'it is as it was');
$node->safe_psql('postgres', 'DROP TABLE shared_item');

# --- a role that is gone, or has another name
$token = reserve('clerk', 5, 1);
$node->safe_psql('postgres', 'ALTER ROLE clerk RENAME TO seller');
is(as('seller', "SELECT interlock.cancel_reservation($token)"), 'f', 'a role that was renamed has no reservations of its former name');
is(as('shop', "SELECT interlock.cancel_reservation($token)"), 't', 'the owner has');
$node->safe_psql('postgres', 'ALTER ROLE seller RENAME TO clerk');

# --- tables that are gone, or no longer have counters
my $trigger = $node->safe_psql('postgres', q(SELECT tgname FROM pg_trigger WHERE tgrelid = 'item'::regclass AND tgname LIKE 'zzzz%' AND NOT tgisinternal));
$token = reserve('clerk', 5, 4);
my $expired = reserve('clerk', 6, 4, '1 ms');
$node->safe_psql('postgres', "ALTER TABLE item DISABLE TRIGGER $trigger");
like(as('clerk', "SELECT interlock.${_}_reservation($token)"), qr/55000/, "$_ while the triggers are off") for 'confirm', 'cancel';
$node->safe_psql('postgres', "ALTER TABLE item ENABLE ALWAYS TRIGGER $trigger");
is(as('clerk', "SELECT interlock.cancel_reservation($token)"), 't', 'and on again');
$node->safe_psql('postgres', q(SET ROLE mallory; CREATE TABLE m (id int PRIMARY KEY, stock int NOT NULL); INSERT INTO m VALUES (1, 9);
SELECT interlock.enable_escrow('m', 'stock'), interlock.reserve('m', 1, 'stock', 1, '1 ms'), interlock.reserve('m', 1, 'stock', 1, '1 h')));
$node->safe_psql('postgres', "ALTER TABLE m DISABLE TRIGGER ALL");
$node->append_conf('postgresql.conf', "interlock.sweeper = on");
$node->restart;
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM interlock.reservations WHERE rel = 'item'::regclass AND expired"), 'a table whose reservations cannot be given back keeps no other from it');
is($node->safe_psql('postgres', "SELECT count(*) FROM interlock.reservations WHERE rel = 'm'::regclass AND expired"), 1, 'that one waits');
like($node->safe_psql('postgres', "SELECT last_error FROM interlock.sweeper WHERE database = current_database()"), qr/does not fire/, 'and says why');
$node->safe_psql('postgres', 'DROP TABLE m');
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM interlock_internal.escrow_reservation WHERE expires_at < now()"), 'what had expired of a dropped table is deleted');

done_testing();
