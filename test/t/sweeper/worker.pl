# The sweeper: expired markers are released by themselves, whatever happens to the tables, the workers and
# the databases meanwhile.
# only with --long

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
max_prepared_transactions = 5
max_worker_processes = 16
interlock.sweeper_rescan = 1
));
$node->start;

# A table whose markers live for $ttl, in $database.
sub make_table
{
    my ($database, $table, $ttl) = @_;
    $node->safe_psql($database, qq(
        CREATE TABLE $table (id int PRIMARY KEY, body text);
        INSERT INTO $table SELECT g, 'x' FROM generate_series(1, 3) g;
        SELECT interlock.enable_marker('$table', '$ttl');));
}

sub lock_all
{
    my ($database, $table) = @_;
    $node->safe_psql($database, "SELECT count((interlock.lock_row('$table', id, 'anna')).locked) FROM $table");
}

sub wait_released
{
    my ($database, $table, $name) = @_;
    ok($node->poll_query_until($database, "SELECT count(*) = 0 FROM $table WHERE lock_status = 1"), $name);
}

$node->safe_psql('postgres', 'CREATE EXTENSION pg_interlock');
make_table('postgres', 'page', '1 s');
lock_all('postgres', 'page');
is($node->safe_psql('postgres', 'SELECT count(*) FROM page WHERE lock_status = 1'), 3, 'held before the deadline');
wait_released('postgres', 'page', 'released after the deadline');
is($node->safe_psql('postgres', "SELECT count(*) FROM page WHERE lock_by IS NULL AND lock_until IS NULL"),
    3, 'nothing of the marker is left');
ok($node->poll_query_until('postgres',
        "SELECT released = 3 AND last_error IS NULL AND failed = 0 FROM interlock.sweeper WHERE database = 'postgres'"),
    'the view counts them');

# C6: set by hand in a transaction that was open for longer than the marker lives
$node->safe_psql('postgres', q(
    BEGIN; SELECT pg_sleep(1.2);
    UPDATE page SET lock_status = 1, lock_by = 'anna', lock_time = now() WHERE id = 1;
    COMMIT;));
is($node->safe_psql('postgres', 'SELECT (interlock.row_lock_of(\'page\', 1)).locked'), 't', 'C6: alive after the commit');
wait_released('postgres', 'page', 'a marker set by plain SQL is released');

# The transaction that sets a marker may take longer than the marker lives: reported when it commits
$node->safe_psql('postgres', q(BEGIN; SELECT interlock.lock_row('page', 2, 'anna', '100 ms'); SELECT pg_sleep(0.5); COMMIT;));
wait_released('postgres', 'page', 'expired before it was committed');

# Markers of a prepared transaction
$node->safe_psql('postgres', q(BEGIN; SELECT interlock.lock_row('page', 3, 'anna', '100 ms'); PREPARE TRANSACTION 'p';));
$node->safe_psql('postgres', 'SELECT pg_sleep(0.5)');
$node->safe_psql('postgres', "COMMIT PREPARED 'p'");
wait_released('postgres', 'page', 'committed as a prepared transaction');

# Rows that came without the trigger are found when the database is looked at again
$node->safe_psql('postgres', q(
    SET session_replication_role = replica;
    UPDATE page SET lock_status = 1, lock_by = 'replicated', lock_until = now() WHERE id = 1;));
wait_released('postgres', 'page', 'written past the trigger');

# One table raises, one has lost a column: the third is swept, the view says why, and they are tried again
make_table('postgres', 'raising', '100 ms');
make_table('postgres', 'renamed', '100 ms');
$node->safe_psql('postgres', q(
    CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.lock_status = 0 AND NEW.id = 2 THEN RAISE EXCEPTION 'row 2 says no'; END IF; RETURN NEW; END $$;
    CREATE TRIGGER no BEFORE UPDATE ON raising FOR EACH ROW EXECUTE FUNCTION no();));
lock_all('postgres', 'raising');
lock_all('postgres', 'page');
$node->safe_psql('postgres', 'ALTER TABLE renamed RENAME lock_until TO deadline');
wait_released('postgres', 'page', 'a table whose trigger raises and one without its column do not block others');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM raising WHERE lock_status = 1'), 'only the bad row stays');
ok($node->poll_query_until('postgres',
        "SELECT last_error IS NOT NULL AND failed > 0 FROM interlock.sweeper WHERE database = 'postgres'"),
    'the error is in the view');
$node->safe_psql('postgres', 'DROP TRIGGER no ON raising; DROP TABLE renamed;');
$node->safe_psql('postgres', 'SELECT interlock_internal.wake_sweeper()');
wait_released('postgres', 'raising', 'the bad row is tried again');
ok($node->poll_query_until('postgres', "SELECT last_error IS NULL FROM interlock.sweeper WHERE database = 'postgres'"),
    'the error is forgotten after a good run');

# A trigger that hangs costs one row, not the others
$node->safe_psql('postgres', q(
    CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.lock_status = 0 AND NEW.id = 1 THEN PERFORM pg_sleep(60); END IF; RETURN NEW; END $$;
    CREATE TRIGGER hang BEFORE UPDATE ON raising FOR EACH ROW EXECUTE FUNCTION hang();));
lock_all('postgres', 'raising');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM raising WHERE lock_status = 1'), 'a hanging row is passed over');
$node->safe_psql('postgres', 'DROP TABLE raising');

# A row that somebody has locked is left and taken later
my $holder = $node->background_psql('postgres');
$holder->query_safe("BEGIN");
$node->safe_psql('postgres', "SELECT interlock.lock_row('page', id, 'anna', '300 ms') FROM page");
$holder->query_safe("SELECT 1 FROM page WHERE id = 2 FOR SHARE");
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM page WHERE lock_status = 1'), 'locked rows are skipped');
$holder->query_safe("COMMIT");
$holder->quit;
wait_released('postgres', 'page', 'and released once they are free');

# Switched off and on by a reload
$node->append_conf('postgresql.conf', 'interlock.sweeper = off');
$node->reload;
$node->poll_query_until('postgres', "SELECT current_setting('interlock.sweeper') = 'off'");
lock_all('postgres', 'page');
$node->safe_psql('postgres', 'SELECT pg_sleep(2.5)');
is($node->safe_psql('postgres', 'SELECT count(*) FROM page WHERE lock_status = 1'), 3, 'nothing is swept while it is off');
is($node->safe_psql('postgres', "SELECT (interlock.lock_row('page', 1, 'bert')).locked"), 't', 'an expired marker is free all the same');
$node->append_conf('postgresql.conf', 'interlock.sweeper = on');
$node->reload;
wait_released('postgres', 'page', 'swept when it is on again');

# Killed: the worker's work is taken up, and the launcher comes back
$node->safe_psql('postgres', q(
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.lock_status = 0 THEN PERFORM pg_sleep(0.5); END IF; RETURN NEW; END $$;
    CREATE TRIGGER slow BEFORE UPDATE ON page FOR EACH ROW EXECUTE FUNCTION slow();));
lock_all('postgres', 'page');
ok($node->poll_query_until('postgres', q(
        SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity
         WHERE backend_type = 'pg_interlock sweeper' AND query LIKE 'sweeping%')), 'a worker is killed');
wait_released('postgres', 'page', 'its rows are released by the next one');
$node->safe_psql('postgres', 'DROP TRIGGER slow ON page');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pg_interlock launcher'");
lock_all('postgres', 'page');
wait_released('postgres', 'page', 'a launcher that was killed comes back');

# Ten databases at once
$node->safe_psql('postgres', "CREATE DATABASE db$_") for 1 .. 10;
for my $i (1 .. 10)
{
    $node->safe_psql("db$i", 'CREATE EXTENSION pg_interlock');
    make_table("db$i", 'page', '1 s');
}
lock_all("db$_", 'page') for 1 .. 10;
wait_released("db$_", 'page', "released in database $_") for 1 .. 10;
is($node->safe_psql('postgres', "SELECT count(*) FROM interlock.sweeper WHERE released = 3 AND database ~ '^db'"),
    10, 'all of them are in the view');

# A database can be copied and dropped while its rows are being swept
$node->safe_psql('db1', q(
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.lock_status = 0 THEN PERFORM pg_sleep(0.2); END IF; RETURN NEW; END $$;
    CREATE TRIGGER slow BEFORE UPDATE ON page FOR EACH ROW EXECUTE FUNCTION slow();
    INSERT INTO page SELECT g, 'x' FROM generate_series(4, 60) g;));
lock_all('db1', 'page');
ok($node->poll_query_until('postgres', "SELECT state = 'running' FROM interlock.sweeper WHERE database = 'db1'"), 'a long sweep runs');
is($node->psql('postgres', 'CREATE DATABASE copy TEMPLATE db1'), 0, 'CREATE DATABASE ... TEMPLATE while sweeping');
ok($node->poll_query_until('postgres', "SELECT state = 'running' FROM interlock.sweeper WHERE database = 'db1'"), 'the sweep goes on');
is($node->psql('postgres', 'DROP DATABASE db1'), 0, 'DROP DATABASE while sweeping');
ok($node->poll_query_until('copy', 'SELECT count(*) < 60 FROM page WHERE lock_status = 1'), 'the copy is swept without being told');
$node->safe_psql('postgres', 'DROP DATABASE copy');

# Even when a trigger catches the cancel: the worker ends, the other rows and the commands get their turn
$node->safe_psql('postgres', 'CREATE DATABASE stubborn');
$node->safe_psql('stubborn', 'CREATE EXTENSION pg_interlock');
make_table('stubborn', 'page', '1 s');
$node->safe_psql('stubborn', q(
    CREATE FUNCTION stubborn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        WHILE NEW.lock_status = 0 AND NEW.id = 1 LOOP
            BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END;
        END LOOP; RETURN NEW; END $$;
    CREATE TRIGGER stubborn BEFORE UPDATE ON page FOR EACH ROW EXECUTE FUNCTION stubborn();));
lock_all('stubborn', 'page');
ok($node->poll_query_until('stubborn', 'SELECT count(*) = 1 FROM page WHERE lock_status = 1'), 'a stubborn row is passed over');
is($node->psql('postgres', 'CREATE DATABASE copy TEMPLATE stubborn'), 0, 'its database is copied');
# On a slow server a worker may live for longer than the five seconds that DROP DATABASE waits for it
my $dropped = 0;
for (1 .. 20) { last if $dropped = $node->psql('postgres', 'DROP DATABASE stubborn') == 0; }
ok($dropped, 'and dropped');
$node->psql('postgres', 'DROP DATABASE copy');

# A template is left alone until it is none any more
$node->safe_psql('postgres', "CREATE DATABASE templ");
$node->safe_psql('templ', 'CREATE EXTENSION pg_interlock');
make_table('templ', 'page', '1 s');
$node->safe_psql('templ', 'ALTER DATABASE templ IS_TEMPLATE true');
lock_all('templ', 'page');
$node->safe_psql('templ', 'SELECT pg_sleep(2.5)');
is($node->safe_psql('templ', 'SELECT count(*) FROM page WHERE lock_status = 1'), 3, 'a template is left alone');
$node->safe_psql('templ', 'ALTER DATABASE templ IS_TEMPLATE false');
wait_released('templ', 'page', 'and swept when it is none any more');

# The extension can be dropped while its rows are being swept, and the drop rolled back
$node->safe_psql('db2', q(
    INSERT INTO page SELECT g, 'x' FROM generate_series(4, 60) g;
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.lock_status = 0 THEN PERFORM pg_sleep(0.1); END IF; RETURN NEW; END $$;
    CREATE TRIGGER slow BEFORE UPDATE ON page FOR EACH ROW EXECUTE FUNCTION slow();));
lock_all('db2', 'page');
ok($node->poll_query_until('postgres', "SELECT state = 'running' FROM interlock.sweeper WHERE database = 'db2'"), 'another long sweep runs');
is($node->psql('db2', 'BEGIN; DROP EXTENSION pg_interlock CASCADE; ROLLBACK;'), 0, 'DROP EXTENSION while sweeping, rolled back');
wait_released('db2', 'page', 'the sweep goes on after the rollback');
lock_all('db2', 'page');
ok($node->poll_query_until('postgres', "SELECT state = 'running' FROM interlock.sweeper WHERE database = 'db2'"), 'and another');
is($node->psql('db2', 'DROP EXTENSION pg_interlock CASCADE'), 0, 'DROP EXTENSION while sweeping');
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM interlock.sweeper WHERE database = 'db2'"), 'the database is left alone');
$node->safe_psql('db2', 'CREATE EXTENSION pg_interlock');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM interlock.sweeper WHERE database = 'db2'"), 'until it has the extension again');

# No slot for a worker: said once, and made up for
$node->append_conf('postgresql.conf', 'max_worker_processes = 2');
$node->restart;
lock_all('postgres', 'page');
ok($node->poll_query_until('postgres', "SELECT count(*) = 3 FROM page WHERE lock_until < clock_timestamp()"), 'expired without a worker');
$node->safe_psql('postgres', 'SELECT pg_sleep(3)');
my $log = slurp_file($node->logfile);
is(() = $log =~ /no background worker slot is free/g, 1, 'said once that there is no slot');
$node->append_conf('postgresql.conf', 'max_worker_processes = 16');
$node->restart;
wait_released('postgres', 'page', 'released when there is one');

ok(slurp_file($node->logfile) !~ /PANIC|TRAP|terminated by signal/, 'nothing crashed');

# A database is dropped while its markers are held: one worker finds that out, and no other is sent
$node->append_conf('postgresql.conf', 'interlock.sweeper_rescan = 0');
$node->reload;
$node->safe_psql('postgres', 'CREATE DATABASE gone');
$node->safe_psql('gone', 'CREATE EXTENSION pg_interlock');
make_table('gone', 'page', '1 s');
lock_all('gone', 'page');
my $oid = $node->safe_psql('gone', 'SELECT oid FROM pg_database WHERE datname = current_database()');
$node->safe_psql('postgres', 'DROP DATABASE gone');
$node->safe_psql('postgres', 'SELECT pg_sleep(5)');
is(() = slurp_file($node->logfile) =~ /FATAL:.*database $oid does not exist/g, 1, 'one worker found no database');

# A prepared transaction that is committed while a worker is at work, after its table had its turn
make_table('postgres', 'early', '100 ms');
make_table('postgres', 'late', '100 ms');
$node->safe_psql('postgres', q(
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NEW; END';
    CREATE TRIGGER wait BEFORE UPDATE ON late FOR EACH ROW
        WHEN (OLD.lock_status = 1 AND NEW.lock_status = 0) EXECUTE FUNCTION wait();));
my $gate = $node->background_psql('postgres');
$gate->query_safe('SELECT pg_advisory_lock(7)');
$node->safe_psql('postgres', q(
    BEGIN; SELECT interlock.lock_row('early', 1, 'anna'); PREPARE TRANSACTION 'early';
    SELECT interlock.lock_row('late', 1, 'anna');));
$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted");
$node->safe_psql('postgres', "COMMIT PREPARED 'early'");
$gate->quit;
wait_released('postgres', 'late', 'the table that came last is released');
wait_released('postgres', 'early', 'and what was committed after its turn');

# The same where no table had markers before
$node->append_conf('postgresql.conf', 'interlock.sweeper_rescan = 0');
$node->reload;
$node->safe_psql('postgres', 'CREATE DATABASE fresh');
$node->safe_psql('fresh', 'CREATE EXTENSION pg_interlock');
$node->safe_psql('fresh', q(
    BEGIN;
    CREATE TABLE first (id int PRIMARY KEY);
    INSERT INTO first VALUES (1);
    SELECT interlock.enable_marker('first', '100 ms');
    SELECT interlock.lock_row('first', 1, 'anna');
    PREPARE TRANSACTION 'first';));
ok($node->poll_query_until('postgres', "SELECT runs > 2 FROM interlock.sweeper WHERE database = 'fresh'"),
    'the sweeper looks again while markers are being enabled');
$node->safe_psql('fresh', "COMMIT PREPARED 'first'");
wait_released('fresh', 'first', 'enabled by a prepared transaction');

$node->stop;
done_testing();
