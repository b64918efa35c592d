# More tables than are left out, whose policies hang and so end the workers before they have tried a row: the sweeper comes to the table of
# another role all the same. Each of them costs a worker, and the pause behind it.
# only with --all

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $hanging = 34;
$PostgreSQL::Test::Utils::timeout_default = 1800; # it takes twenty minutes
my $node = start_server('interlock.sweeper = off');
$node->safe_psql('postgres', qq(
    CREATE ROLE mallory;
    CREATE ROLE shop;
    CREATE SCHEMA m AUTHORIZATION mallory;
    CREATE SCHEMA s AUTHORIZATION shop;
    SET SESSION AUTHORIZATION shop;
    CREATE TABLE s.before (id int PRIMARY KEY);
    SELECT interlock.enable_marker('s.before');
    SET SESSION AUTHORIZATION mallory;
    CREATE FUNCTION m.stubborn() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
        LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END \$\$;
    CREATE FUNCTION m.hangs() RETURNS boolean LANGUAGE plpgsql AS \$\$ BEGIN
        LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END \$\$;
    CREATE TABLE m.stubborn (id int PRIMARY KEY);
    INSERT INTO m.stubborn VALUES (1);
    SELECT interlock.enable_marker('m.stubborn'), interlock.lock_row('m.stubborn', 1, 'anna', '1 ms');
    CREATE TRIGGER stubborn BEFORE UPDATE ON m.stubborn FOR EACH ROW EXECUTE FUNCTION m.stubborn();
    DO \$\$ BEGIN FOR i IN 1 .. $hanging LOOP
        EXECUTE format('CREATE TABLE m.hangs_%s (id int PRIMARY KEY)', i);
        EXECUTE format('INSERT INTO m.hangs_%s VALUES (1)', i);
        PERFORM interlock.enable_marker(format('m.hangs_%s', i)::regclass), interlock.lock_row(format('m.hangs_%s', i)::regclass, 1, 'anna', '1 ms');
        EXECUTE format('ALTER TABLE m.hangs_%s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', i);
        EXECUTE format('CREATE POLICY hangs ON m.hangs_%s USING (m.hangs())', i);
    END LOOP; END \$\$;
    SET SESSION AUTHORIZATION shop;
    CREATE TABLE s.behind (id int PRIMARY KEY);
    SELECT interlock.enable_marker('s.behind');
    INSERT INTO s.before VALUES (1);
    INSERT INTO s.behind VALUES (1)));

$node->append_conf('postgresql.conf', 'interlock.sweeper = on');
$node->restart;
$node->wait_for_log(qr/a sweeper worker ended itself/);
# Both expire while workers are ended.
for my $table ('s.behind', 's.before')
{
    $node->safe_psql('postgres', "SELECT interlock.lock_row('$table', 1, 'anna', '1 ms')");
    ok($node->poll_query_until('postgres', "SELECT lock_status = 0 FROM $table"), "a marker of $table is released");
}

$node->stop('immediate');
done_testing();
