# OPS-14: the sweeper on a server so slow that everything takes seconds: each life of a worker gets further.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server();

$node->safe_psql('postgres', q(
    CREATE TABLE page (id int PRIMARY KEY);
    INSERT INTO page VALUES (1);
    SELECT interlock.enable_marker('page');));

# Finding the tables takes longer than a worker may live: here the catalog that it looks into is locked
my $locker = $node->background_psql('postgres');
$locker->query_safe("SELECT interlock.lock_row('page', 1, 'anna', '100 ms')");
$locker->query_safe("BEGIN; LOCK TABLE pg_catalog.pg_extension IN ACCESS EXCLUSIVE MODE");
my $waiter = "SELECT pid FROM pg_locks WHERE relation = 'pg_extension'::regclass AND NOT granted";
ok($node->poll_query_until('postgres', "SELECT EXISTS ($waiter)"), 'a worker waits for the catalog');
my $pid = $node->safe_psql('postgres', $waiter);
ok($node->poll_query_until('postgres',
    "SELECT NOT EXISTS ($waiter) OR (SELECT clock_timestamp() > waitstart + '4 s'::interval FROM pg_locks WHERE pid = $pid AND NOT granted)"),
    'for longer than a worker may live');
is($node->safe_psql('postgres', $waiter), $pid, 'and is not ended before its first table');
$locker->query_safe('COMMIT');
$locker->quit;
ok($node->poll_query_until('postgres', 'SELECT lock_status = 0 FROM page'), 'it releases the row then');
ok($node->poll_query_until('postgres', 'SELECT runs > 0 FROM interlock.sweeper'), 'and ends its run');
is($node->safe_psql('postgres', "SELECT last_error IS NULL AND failed = 0 FROM interlock.sweeper"), 't', 'without an error');
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile), qr/terminating background worker/, 'and comes to its end');

# A worker starts slowly, so triggers may be as slow: one that takes longer than usually allowed is not cancelled
$node->safe_psql('postgres', q(
    CREATE FUNCTION doze() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1.5); RETURN NEW; END';
    CREATE TRIGGER doze BEFORE UPDATE ON page FOR EACH ROW WHEN (NEW.lock_status = 0) EXECUTE FUNCTION doze();
    CREATE PROCEDURE await_release() LANGUAGE plpgsql AS $$ BEGIN
        WHILE EXISTS (SELECT FROM page WHERE lock_status = 1)
                AND (SELECT failed = 0 FROM interlock.sweeper WHERE database = 'postgres') LOOP
            PERFORM pg_sleep(0.1);
            COMMIT;
        END LOOP; END $$;));
$node->append_conf('postgresql.conf', 'post_auth_delay = 2');
$node->reload;
is($node->safe_psql('postgres', q(
    SELECT locked FROM interlock.lock_row('page', 1, 'anna', '100 ms');
    CALL await_release();
    SELECT lock_status, failed, last_error FROM page, interlock.sweeper WHERE database = 'postgres';)),
    "t\n0|0|", 'a trigger may be as slow as the server');

# One that catches the cancel is still ended, and the log says why
$node->append_conf('postgresql.conf', 'post_auth_delay = 0');
$node->reload;
$node->safe_psql('postgres', q(
    CREATE OR REPLACE FUNCTION doze() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$;
    SELECT interlock.lock_row('page', 1, 'anna', '100 ms');));
ok($node->poll_query_until('postgres', "SELECT last_error ~ 'was ended before' FROM interlock.sweeper WHERE database = 'postgres'"),
    'a worker is ended');
like(PostgreSQL::Test::Utils::slurp_file($node->logfile),
    qr/a sweeper worker ended itself after 3000 ms\n.*DETAIL:  The last table it tried is "\w+"\."\w+"\."\w+"\./, 'the log says why');

$node->stop('immediate');
done_testing();
