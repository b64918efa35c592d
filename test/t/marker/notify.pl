# Markers tell listeners: locked, unlocked, handed over, taken over, expired and forced, at commit; the key and the holder where the owner wants it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server();
$node->safe_psql('postgres', q(
    CREATE TABLE page (id int, part text, body text, PRIMARY KEY (id, part));
    SELECT interlock.enable_marker('page', '1 hour', notify => 'full');
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
is(heard(q(SELECT interlock.hand_over_row('page', '{"id": 1, "part": "a"}', 'bert', 'carl'))),
    qq({"table": "public.page", $key, "event": "handed_over", "holder": "carl"}), 'handed over, to whom');
is(heard(q(BEGIN; SELECT interlock.set_holder('carl'); UPDATE page SET lock_by = 'bert' WHERE id = 1; COMMIT;)),
    qq({"table": "public.page", $key, "event": "handed_over", "holder": "bert"}), 'also by hand');
is(heard(q(SELECT interlock.hand_over_row('page', '{"id": 1, "part": "a"}', 'bert', 'bert', '2 hours'))), '', 'to oneself is a renewal');
$node->safe_psql('postgres', q(SELECT interlock.enable_marker('page', '1 hour', notify => 'full', take_over => 'allow')));
is(heard(q(SELECT interlock.take_over_row('page', '{"id": 1, "part": "a"}', 'dora', 'why not'))),
    qq({"table": "public.page", $key, "event": "forced", "holder": "bert"}\n)
      . qq({"table": "public.page", $key, "event": "locked", "holder": "dora"}), 'taken over: from whom, and by whom');
is(heard(q(BEGIN; SELECT interlock.take_over_row('page', '{"id": 1, "part": "a"}', 'bert', 'why not'); ROLLBACK)), '', 'not if it is rolled back');
is(heard(q(SELECT interlock.unlock_row('page', '{"id": 1, "part": "a"}', 'dora'); SELECT interlock.take_over_row('page', '{"id": 1, "part": "a"}', 'bert', 'why not'))),
    qq({"table": "public.page", $key, "event": "unlocked", "holder": "dora"}\n)
      . qq({"table": "public.page", $key, "event": "locked", "holder": "bert"}), 'a free row is locked');
is(heard(q(INSERT INTO page (id, part, lock_status, lock_by) VALUES (3, 'c', 1, 'anna'); SELECT interlock.delete_row('page', '{"id": 3, "part": "c"}', 'anna'))),
    qq({"table": "public.page", "key": {"id": 3, "part": "c"}, "event": "locked", "holder": "anna"}\n)
      . qq({"table": "public.page", "key": {"id": 3, "part": "c"}, "event": "unlocked", "holder": "anna"}), 'deleted by the function');
is(heard(q(BEGIN; SELECT interlock.set_holder('bert'); DELETE FROM page WHERE id = 1; COMMIT;)),
    qq({"table": "public.page", $key, "event": "unlocked", "holder": "bert"}), 'deleted by its holder');

# What is not written is not told
$node->safe_psql('postgres', q(
    CREATE TABLE note (id int PRIMARY KEY, body text);
    SELECT interlock.enable_marker('note', '1 hour', notify => 'full');
    INSERT INTO note VALUES (1, 'a'), (2, 'b');
    SELECT interlock.lock_row('note', 1, 'anna');
    CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    CREATE TRIGGER aaa_swallow BEFORE UPDATE ON note FOR EACH ROW WHEN (NEW.id = 2) EXECUTE FUNCTION swallow();));
is(heard(q(INSERT INTO note (id, lock_status, lock_by) VALUES (1, 1, 'bob') ON CONFLICT DO NOTHING)), '', 'an insert that meets a conflict');
is(heard(q(UPDATE note SET lock_status = 1, lock_by = 'bob' WHERE id = 2)), '', 'an update that another trigger swallows');
is(heard(q(INSERT INTO note (id, lock_status, lock_by) VALUES (3, 1, 'bob'))),
    qq({"table": "public.note", "key": {"id": 3}, "event": "locked", "holder": "bob"}), 'an insert is told');
# SEC-9: every role can listen, and learns no key and no holder unless the owner says so
$node->safe_psql('postgres', q(CREATE ROLE stranger LOGIN));
my $told = qq({"table": "public.note", "event": "locked"});
is(heard(q(SELECT interlock.enable_marker('note', '1 hour', notify => 'on');
        BEGIN; INSERT INTO note (id, lock_status, lock_by) VALUES (5, 1, 'bob'), (6, 1, 'eve'); COMMIT;)), $told, 'once, and without the row');
my $stranger = $node->background_psql('postgres', extra_params => [ '-U', 'stranger' ]);
$stranger->query_safe('LISTEN interlock_row_lock');
$node->safe_psql('postgres', q(SELECT interlock.force_unlock_row('note', 5, 'why')));
my ($event) = $stranger->query('SELECT 1') =~ /with payload "(.*)" received/;
is($event, qq({"table": "public.note", "event": "forced"}), 'a stranger hears of the table alone');
$stranger->quit;
is(heard(q(SELECT interlock.enable_marker('note', '1 hour', notify => 'full'); INSERT INTO note (id, lock_status, lock_by) VALUES (7, 1, 'bob'))),
    qq({"table": "public.note", "key": {"id": 7}, "event": "locked", "holder": "bob"}), 'full');
like(($node->psql('postgres', q(SELECT interlock.enable_marker('note', notify => 'everything'))))[2], qr/unknown value "everything" for argument "notify"/, 'no other value');
is(heard(q(SELECT interlock.enable_marker('note', '1 hour'); INSERT INTO note (id, lock_status, lock_by) VALUES (4, 1, 'bob'))), '', 'off again');

# Partitions: the table that clients know, and a row that moves is the same row
$node->safe_psql('postgres', q(
    CREATE TABLE sheet (id int, region text, body text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
    CREATE TABLE sheet_eu PARTITION OF sheet FOR VALUES IN ('eu');
    CREATE TABLE sheet_us PARTITION OF sheet FOR VALUES IN ('us') PARTITION BY LIST (region);
    CREATE TABLE sheet_us_all PARTITION OF sheet_us DEFAULT;
    SELECT interlock.enable_marker('sheet', '1 hour', notify => 'full');
    INSERT INTO sheet VALUES (1, 'eu'), (2, 'eu'), (3, 'us');));
sub sheet_event
{
    my ($id, $region, $event, $holder) = @_;
    return qq({"table": "public.sheet", "key": {"id": $id, "region": "$region"}, "event": "$event", "holder": "$holder"});
}
my $anna = q(SELECT interlock.set_holder('anna'));
is(heard(q(SELECT interlock.lock_row('sheet', '{"id": 1, "region": "eu"}', 'anna'))), sheet_event(1, 'eu', 'locked', 'anna'), 'the table');
is(heard(q(UPDATE sheet_us_all SET lock_status = 1, lock_by = 'bert')), sheet_event(3, 'us', 'locked', 'bert'), 'also of a partition of one');
is(heard("BEGIN; $anna; UPDATE sheet SET region = 'us' WHERE id = 1; COMMIT"), '', 'a move is no news');
is(heard("BEGIN; $anna; UPDATE sheet SET region = 'eu', lock_status = 0 WHERE id = 1; COMMIT"),
    sheet_event(1, 'eu', 'unlocked', 'anna'), 'a move that unlocks');
is(join("\n", sort split /\n/, heard(q(UPDATE sheet SET region = 'us', lock_status = 1, lock_by = 'anna' WHERE id IN (1, 2)))),
    sheet_event(1, 'us', 'locked', 'anna') . "\n" . sheet_event(2, 'us', 'locked', 'anna'), 'moves that lock');
is(heard("BEGIN; $anna; UPDATE sheet SET region = 'eu' WHERE id < 3; UPDATE sheet SET region = 'us' WHERE id < 3; COMMIT"), '', 'there and back');
is(heard("BEGIN; $anna; DELETE FROM sheet WHERE id = 1; INSERT INTO sheet (id, region, lock_status, lock_by) VALUES (1, 'eu', 1, 'anna'); COMMIT"),
    sheet_event(1, 'us', 'unlocked', 'anna') . "\n" . sheet_event(1, 'eu', 'locked', 'anna'), 'a row by hand is another row');

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
    SELECT interlock.enable_marker('long', notify => 'full');
    INSERT INTO long VALUES (repeat('x', 2600));));
like(heard(q(SELECT interlock.lock_row('long', id, repeat('"', 1024)) FROM long)), qr/"key": \{"id": "x+"\}/, 'a long key');
$node->stop;
done_testing();
