# Markers tell listeners: locked, unlocked, expired and forced, at commit, with the key and the holder.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'");
$node->start;
$node->safe_psql('postgres', q(
    CREATE EXTENSION pg_interlock;
    CREATE TABLE page (id int, part text, body text, PRIMARY KEY (id, part));
    SELECT interlock.enable_marker('page', '1 hour', notify => true);
    INSERT INTO page VALUES (1, 'a'), (2, 'b');));

# What a listener hears of some statements, one line for each event.
sub heard
{
    my ($sql) = @_;
    my $out = $node->safe_psql('postgres', "LISTEN interlock_row_lock; $sql");
    return join "\n", $out =~ /with payload "(.*)" received/g;
}

my $key = '"key": {"id": 1, "part": "a"}';
is(heard(q(SELECT interlock.lock_row('page', '{"id": 1, "part": "a"}', 'anna'))),
    qq({"table": "public.page", $key, "event": "locked", "holder": "anna"}), 'locked');
is(heard(q(SELECT interlock.lock_row('page', '{"id": 1, "part": "a"}', 'anna'))), '', 'a renewal is no news');
is(heard(q(SELECT interlock.lock_row('page', '{"id": 1, "part": "a"}', 'bert'))), '', 'nor is a refusal');
is(heard(q(BEGIN; SELECT interlock.unlock_row('page', '{"id": 1, "part": "a"}', 'anna'); ROLLBACK;)), '', 'nor what is rolled back');
is(heard(q(SELECT interlock.save_row('page', '{"id": 1, "part": "a"}', 'anna', '{"body": "x"}'))),
    qq({"table": "public.page", $key, "event": "unlocked", "holder": "anna"}), 'unlocked');
is(heard(q(UPDATE page SET lock_status = 1, lock_by = 'by "hand"' WHERE id = 1)),
    qq({"table": "public.page", $key, "event": "locked", "holder": "by \\"hand\\""}), 'locked by hand');
is(heard(q(SELECT interlock.force_unlock_row('page', '{"id": 1, "part": "a"}', 'why not'))),
    qq({"table": "public.page", $key, "event": "forced", "holder": "by \\"hand\\""}), 'forced');
is(heard(q(SELECT interlock.lock_row('page', '{"id": 1, "part": "a"}', 'anna', '1 ms'); SELECT pg_sleep(0.05);
        SELECT interlock.lock_row('page', '{"id": 1, "part": "a"}', 'bert');)),
    qq({"table": "public.page", $key, "event": "locked", "holder": "anna"}\n)
      . qq({"table": "public.page", $key, "event": "expired", "holder": "anna"}\n)
      . qq({"table": "public.page", $key, "event": "locked", "holder": "bert"}), 'expired, and taken by the next')
  or diag('the sweeper may have been first');
is(heard(q(BEGIN; SELECT interlock.set_holder('bert'); DELETE FROM page WHERE id = 1; COMMIT;)),
    qq({"table": "public.page", $key, "event": "unlocked", "holder": "bert"}), 'deleted by its holder');

# The sweeper's releases are heard as well
my $listener = $node->background_psql('postgres');
$listener->query_safe('LISTEN interlock_row_lock');
$node->safe_psql('postgres', q(SELECT interlock.lock_row('page', '{"id": 2, "part": "b"}', 'anna', '100 ms')));
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM page WHERE lock_status = 1');
my $out = $listener->query('SELECT 1');
like($out, qr/"event": "expired", "holder": "anna"/, 'swept');
$listener->quit;

# The longest key that an index takes and the longest holder fit into one notification
$node->safe_psql('postgres', q(
    CREATE TABLE long (id text PRIMARY KEY);
    SELECT interlock.enable_marker('long', notify => true);
    INSERT INTO long VALUES (repeat('x', 2600));));
like(heard(q(SELECT interlock.lock_row('long', id, repeat('"', 1024)) FROM long)), qr/"key": \{"id": "x+"\}/, 'a long key');
$node->stop;
done_testing();
