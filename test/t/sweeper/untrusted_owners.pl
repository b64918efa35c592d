# The sweeper among tables of untrusted owners: it neither lends them its rights nor lets them disturb others.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'");
$node->start;

sub wait_for
{
    my ($database, $condition, $name) = @_;
    ok($node->poll_query_until($database, "SELECT $condition"), $name);
}

sub lock_all
{
    my ($database, $table) = @_;
    $node->safe_psql($database, "SELECT count((interlock.lock_row('$table', id, 'anna', '100 ms')).locked) FROM $table");
}

# Three tables of two owners, swept in this order by one worker: what the first does to its session does not reach the others
$node->safe_psql('postgres', q(
    CREATE EXTENSION pg_interlock;
    CREATE ROLE mallory;
    CREATE SCHEMA m AUTHORIZATION mallory;
    SET ROLE mallory;
    CREATE TABLE m.page (id int PRIMARY KEY);
    INSERT INTO m.page VALUES (1);
    SELECT interlock.enable_marker('m.page');
    CREATE FUNCTION m.disturb() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.lock_status = 0 THEN
            PERFORM set_config('search_path', 'm', false), set_config('default_transaction_read_only', 'on', false),
                    set_config('row_security', 'off', false), set_config('m.own', 'x', false), pg_advisory_lock(1);
        END IF;
        RETURN NEW; END $$;
    CREATE TRIGGER disturb BEFORE UPDATE ON m.page FOR EACH ROW EXECUTE FUNCTION m.disturb();
    RESET ROLE;
    CREATE TABLE page (id int PRIMARY KEY);
    CREATE TABLE seen (setting text);
    INSERT INTO page VALUES (1);
    SELECT interlock.enable_marker('page');
    CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.lock_status = 0 THEN
            INSERT INTO public.seen VALUES
                (current_setting('search_path')), (current_setting('default_transaction_read_only')),
                (current_setting('row_security')), (coalesce(current_setting('m.own', true), '')),
                ((SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'));
        END IF;
        RETURN NEW; END $$;
    CREATE TRIGGER look BEFORE UPDATE ON page FOR EACH ROW EXECUTE FUNCTION look();));
$node->safe_psql('postgres', q(
    BEGIN;
    SELECT interlock.lock_row('m.page', 1, 'anna', '100 ms'), interlock.lock_row('page', 1, 'anna', '100 ms'), pg_sleep(0.2);
    COMMIT;));
wait_for('postgres', "(SELECT lock_status FROM m.page) = 0", 'a disturbing table is swept');
wait_for('postgres', "(SELECT lock_status FROM page) = 0", 'and the one behind it');
is($node->safe_psql('postgres', "SELECT string_agg(setting, '; ' ORDER BY ctid) FROM seen"),
    'pg_catalog, pg_temp; off; on; ; 0', 'under clean settings and without locks');
is($node->safe_psql('postgres', "SELECT last_error IS NULL AND failed = 0 FROM interlock.sweeper"), 't', 'without an error');

# Messages are cut between characters, wherever the cut comes, and readable in databases of other encodings
$node->safe_psql('postgres', 'DROP TRIGGER disturb ON m.page; DROP TRIGGER look ON page;');
sub raise_in
{
    my ($database, $prefix) = @_;
    $node->safe_psql($database, qq(
        CREATE OR REPLACE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
            IF NEW.lock_status = 0 THEN RAISE EXCEPTION '%', '$prefix' || repeat(chr(228), 300); END IF; RETURN NEW; END \$\$));
    lock_all($database, 'page');
    wait_for($database, "(SELECT last_error ~ ('^table [a-z.]+[0-9]*: $prefix' || chr(228)) FROM interlock.sweeper
        WHERE database = current_database())", "a row of $database fails");
}
sub reads
{
    my ($reader, $database, $character) = @_;
    is($node->safe_psql($reader, "SELECT last_error ~ ('^table [a-z.]+[0-9]*: x+' || $character || '+\$') AND length(last_error) > 100
        FROM interlock.sweeper WHERE database = '$database'"), 't', "$reader reads a message of $database");
}
for my $encoding ('utf8', 'latin1')
{
    $node->safe_psql('postgres', "CREATE DATABASE $encoding ENCODING '$encoding' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
    $node->safe_psql($encoding, q(
        CREATE EXTENSION pg_interlock;
        CREATE TABLE page (id int PRIMARY KEY);
        INSERT INTO page VALUES (1);
        SELECT interlock.enable_marker('page');
        CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
        CREATE TRIGGER shout BEFORE UPDATE ON page FOR EACH ROW EXECUTE FUNCTION shout();));
}
for my $prefix ('x', 'xx')
{
    for my $database ('utf8', 'latin1')
    {
        raise_in($database, $prefix);
        reads($database, $database, 'chr(228)');
    }
    reads('utf8', 'latin1', "'[?]'");
    reads('latin1', 'utf8', "'[?]'");
    my ($ret, $out, $err) = $node->psql('utf8', 'SELECT * FROM interlock.sweep()');
    like($err, qr/could not release every expired marker.*DETAIL:  x/s, 'swept by hand');
    ok(utf8::decode($err), 'its warning is valid');
}

$node->stop;
done_testing();
