# Triggers that catch the cancel, in two databases: each of their runs has to be ended. The two are tried again, but never
# at the same time, so that there is always a worker for the others; and ever more rarely.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Server;
use Test::More;

my $node = start_server();

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

for my $database ('stubborn1', 'stubborn2', 'quiet')
{
    $node->safe_psql('postgres', "CREATE DATABASE $database");
    $node->safe_psql($database, q(
        CREATE EXTENSION pg_interlock;
        CREATE TABLE page (id int PRIMARY KEY);
        INSERT INTO page SELECT generate_series(1, 100);
        SELECT interlock.enable_marker('page');
        CREATE FUNCTION stubborn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            WHILE NEW.lock_status = 0 LOOP
                BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END;
            END LOOP; RETURN NEW; END $$;));
    next if $database eq 'quiet';
    $node->safe_psql($database, 'CREATE TRIGGER stubborn BEFORE UPDATE ON page FOR EACH ROW EXECUTE FUNCTION stubborn()');
    lock_all($database, 'page');
}
wait_for('postgres', "(SELECT count(*) = 2 FROM interlock.sweeper WHERE last_error ~ 'was ended before')", 'workers of two databases are ended');
my ($most, $tries, $previous, $releases) = (0, 0, '', 0);
while ($tries < 4)
{
    my $running = $node->safe_psql('postgres',
        "SELECT string_agg(database, ',') FROM interlock.sweeper WHERE state = 'running' AND database ~ 'stubborn'");
    $most = 2 if $running =~ /,/;
    $tries++ if $running ne '' && $running ne $previous;
    $previous = $running;
    next unless $running ne '' && $node->safe_psql('quiet', 'SELECT count(*) FROM page WHERE lock_status = 1') == 0;
    lock_all('quiet', 'page');
    $releases++;
}
isnt($most, 2, 'they are tried again, one at a time');
cmp_ok($releases, '>', 1, 'the others are released meanwhile');
wait_for('quiet', "count(*) = 0 FROM page WHERE lock_status = 1", 'all of them');
wait_for('postgres', "bool_or(next_deadline > clock_timestamp() + '5 s'::interval) FROM interlock.sweeper WHERE database ~ 'stubborn'",
    'the pauses between the tries grow');

$node->stop;
done_testing();
