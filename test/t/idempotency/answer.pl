# Clients that get one answer, large bodies, ten thousand scopes, and what is known of work that has died: over the life of
# sessions and servers.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Protocol;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server(q(
interlock.sweeper = off
log_statement = none
));
sub sql { my ($statement, $database) = @_; return $node->safe_psql($database // 'postgres', $statement); }
# The error of a statement, with its SQLSTATE, and the hint.
sub refused
{
    my ($statement) = @_;
    my (undef, undef, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$statement");
    my ($error) = $err =~ /ERROR: +(.*)/;
    my ($hint) = $err =~ /HINT: +(.*)/;
    return join(' ', grep { defined } $error, $hint);
}

sql(q(
    CREATE TABLE effect (body text);
    CREATE FUNCTION submit(request jsonb) RETURNS jsonb LANGUAGE sql AS
        $$INSERT INTO effect VALUES (request->>'body'); SELECT pg_advisory_xact_lock_shared(2); SELECT jsonb_build_object('stored', request->>'body', 'at', clock_timestamp())$$;
    SELECT interlock.define_idempotency_scope('job', 'job', stale_after => '1 hour');
    SELECT interlock.define_idempotency_scope('large', max_response_bytes => 200 * 1024 * 1024);
    CREATE FUNCTION token(k text) RETURNS bigint LANGUAGE sql AS 'SELECT token FROM interlock.idempotency WHERE key = k';
));

# IDM-6: eight clicks at once, and one with another payload among them
my $gate = start($node);
query($gate, 'SELECT pg_advisory_lock(2)');
query($gate, 'BEGIN; SELECT pg_advisory_xact_lock(1)');
my $click = q(SELECT pg_advisory_xact_lock_shared(1); SELECT outcome, response FROM interlock.run_once('form', 'form 5', 'submit(jsonb)', '{"body": "hello"}', wait => '1 hour'));
my @clicks = map { start($node) } 1 .. 8;
send_query($_, $click) for @clicks;
ok($node->poll_query_until('postgres', q(SELECT count(*) = 8 FROM pg_locks WHERE locktype = 'advisory' AND objid = 1 AND NOT granted)), '8 clicks are ready');
query($gate, 'COMMIT');
ok($node->poll_query_until('postgres', q(SELECT EXISTS (SELECT FROM interlock.key_locks WHERE kind = 'idempotency'))), 'they begin');
query($gate, 'SELECT pg_advisory_unlock(2)');
answer($_) for @clicks;
my @answers = map { $_->{rows}[-1] } @clicks;
is(scalar(grep { $_->[0] eq 'completed' } @answers), 1, 'IDM-6: one of 8 clicks is completed');
is(scalar(grep { $_->[0] eq 'replay' } @answers), 7, 'IDM-6: the others replay it');
my %responses = map { $_->[1] => 1 } @answers;
is(scalar(keys %responses), 1, 'IDM-6: all have the same answer');
is(sql('SELECT count(*) FROM effect'), 1, 'IDM-6: one effect');

query($gate, q(BEGIN; SELECT interlock.run_once('form', 'form 6', 'submit(jsonb)', '{"body": "first"}')));
is(sql(q(SELECT outcome FROM interlock.run_once('form', 'form 6', 'submit(jsonb)', '{"body": "second"}', wait => '1 hour'))), 'mismatch', 'IDM-6: another payload is a mismatch at once');
is(sql(q(SELECT outcome FROM interlock.run_once('form', 'form 6', 'submit(jsonb)', '{"body": "first"}'))), 'in_progress', 'the same one is in progress');
query($gate, 'ROLLBACK');
is(sql(q(SELECT outcome FROM interlock.run_once('form', 'form 6', 'submit(jsonb)', '{"body": "second"}'))), 'completed', 'rolled back: the key is free for another');

# IDM-3: who waits gets what is given back
sql(q(SELECT interlock.idempotency_claim('job', 'back')));
my $waiter = start($node);
send_query($waiter, q(SELECT outcome, attempt FROM interlock.idempotency_claim('job', 'back', '{"any": 1}', wait => '1 hour')));
ok($node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $waiter->{pid} AND wait_event = 'PgInterlockIdempotency' OR pid = $waiter->{pid} AND wait_event_type = 'Extension')"),
    'a duplicate waits');
is(sql(q(SELECT interlock.idempotency_release('job', 'back', token('back')))), 't', 'IDM-3: released');
answer($waiter);
is(join('|', @{ $waiter->{rows}[-1] }), 'acquired|1', 'IDM-3: the waiter gets it, with another request');

# IDM-5: 100 MB with zero bytes
my $body = q(decode(repeat('00ff0d0a', 26214400), 'hex'));
sql(q(SELECT interlock.idempotency_claim('large', 'export')));
is(sql(qq(SELECT interlock.idempotency_complete('large', 'export', token('export'), '{"status": 200}', body => $body))), 't', 'IDM-5: 100 MB are kept');
is(sql(q(SELECT interlock.define_idempotency_scope('small'); SELECT interlock.idempotency_claim('small', 'small export'))) ne '', 1, 'claimed');
is(sql(qq(SELECT interlock.idempotency_complete('small', 'small export', token('small export'), '{"status": 200}', 'export 7', $body))), 'f',
    'IDM-27, IDM-5: complete says that they are not');
$node->stop('immediate');
$node->start;
is(sql(qq(SELECT outcome, response, md5(body) = md5($body), has_response FROM interlock.idempotency_claim('large', 'export'))), 'replay|{"status": 200}|t|t', 'IDM-5: and replayed, also after a crash');
is(sql(q(SELECT outcome, response, result_id, body, has_response FROM interlock.idempotency_claim('small', 'small export'))), 'replay||export 7||t', 'IDM-5: what was not kept is not done again');

# A worker that dies: what its successor knows
sub dies
{
    my ($key, @steps) = @_;
    my $worker = start($node);
    query($worker, qq(SELECT interlock.idempotency_claim('job', '$key', state => '{"reference": "$key"}', stale_after => '1 ms')));
    query($worker, $_) for @steps;
    sql("SELECT pg_terminate_backend($worker->{pid}, 60000)");
    sql('SELECT pg_sleep(0.01)');
    return sql(qq(SELECT outcome, attempt, checkpoint, state FROM interlock.idempotency_claim('job', '$key')));
}
is(dies('not begun'), 'acquired|2||{"reference": "not begun"}', 'IDM-6: before the effect: no checkpoint, and the state of the claim');
is(dies('begun', q(SELECT interlock.idempotency_checkpoint('job', 'begun', token('begun'), 'paying', '{"reference": "begun"}'))), 'acquired|2|paying|{"reference": "begun"}',
    'IDM-6: from the checkpoint on the effect may be there');
is(dies('rolled back', q(BEGIN; SELECT interlock.idempotency_checkpoint('job', 'rolled back', token('rolled back'), 'paying'))), 'acquired|2||{"reference": "rolled back"}',
    'IDM-6: a checkpoint that is not committed was not reached');
sql(q(SELECT interlock.define_idempotency_scope('poison', 'job', max_attempts => 3)));
sub poison { return sql(q(SELECT outcome, attempt FROM interlock.idempotency_claim('poison', 'pill', stale_after => '1 ms'); SELECT pg_sleep(0.01))) =~ s/\n$//r; }
is(join(' ', map { poison() } 1 .. 5), 'acquired|1 acquired|2 acquired|3 exhausted|3 exhausted|3', 'IDM-6: a job that always dies is given up');

# Ten thousand scopes are more than a session keeps; odd names
sql(q(
    CREATE ROLE app; CREATE ROLE every; CREATE ROLE outsider;
    SELECT count(interlock.define_idempotency_scope('scope ' || g, max_attempts => 1 + g % 2)) FROM generate_series(1, 10000) g;
    SELECT interlock.grant_idempotency_scope('*', 'every'), interlock.grant_idempotency_scope('scope 77', 'app')));
is(sql(q(SET ROLE every; SELECT count(*) FROM generate_series(1, 10000, 100) g, LATERAL interlock.idempotency_claim('scope ' || g, 'k', stale_after => '1 us') WHERE outcome = 'acquired')), 100, '10,000 scopes');
is(sql(q(SET ROLE every; SELECT outcome, count(*) FROM generate_series(1, 10000, 100) g, LATERAL interlock.idempotency_claim('scope ' || g, 'k', stale_after => '1 us') GROUP BY outcome)), 'acquired|100', 'each with its settings');
is(sql(q(SET ROLE every; SELECT outcome, count(*) FROM generate_series(1, 10000, 100) g, LATERAL interlock.idempotency_claim('scope ' || g, 'k') GROUP BY outcome)), 'exhausted|100', 'until they are exhausted');
for my $name (q('*'), q('; DROP TABLE effect; --'), q("), q(a b/c:d\\e%), "\x{1}", q($$), 'x' x 255)
{
    my $quoted = "'" . ($name =~ s/'/''/gr) . "'";
    is(sql(qq(SELECT interlock.define_idempotency_scope($quoted, stale_after => '7 min'), interlock.grant_idempotency_scope($quoted, 'app');
        SET ROLE app; SELECT outcome FROM interlock.idempotency_claim($quoted, 'odd'); SELECT status FROM interlock.idempotency_lookup($quoted, 'odd'))) =~ s/^\|\n//r, "acquired\npending",
        'a scope named ' . substr($name, 0, 30) =~ s/[^ -~]/?/gr) if $name ne q('*');
}
for my $name ('', 'x' x 256, "a\nb")
{
    like(refused("SELECT interlock.idempotency_lookup('$name', 'k')"), qr/^22023/, 'no scope: ' . substr($name =~ s/\n/\\n/r, 0, 10));
}
sql(q(SELECT interlock.revoke_idempotency_scope('*', 'every')));

# SEC-10: each function needs a grant of the scope
sql(q(SELECT interlock.idempotency_claim('scope 77', 'mine'); GRANT EXECUTE ON FUNCTION interlock.idempotency_forget TO outsider; GRANT USAGE ON SCHEMA public TO outsider));
my $token = sql(q(SELECT token('mine')));
for my $call (q(idempotency_claim('scope 77', 'mine', request_hash => '\x01', state => '1')), qq(idempotency_complete('scope 77', 'mine', $token, body => '')),
    qq(idempotency_release('scope 77', 'mine', $token)), q(idempotency_forget('scope 77', 'mine', 'r')), q(idempotency_lookup('scope 77', 'mine')),
    q(run_once('scope 77', 'mine', 'submit(jsonb)', wait => '1 s')), qq(idempotency_extend('scope 77', 'mine', $token)))
{
    is(refused("SET ROLE outsider; SELECT * FROM interlock.$call"),
        q(42501: idempotency scope "scope 77" is not granted to role "outsider" Grant it: SELECT interlock.grant_idempotency_scope('scope 77', 'outsider');), 'SEC-10: ' . $call =~ s/\(.*//r);
}
like(refused(q(SET ROLE app; SELECT interlock.idempotency_forget('scope 77', 'mine', 'r'))), qr/^42501: permission denied for function/, 'SEC-10: a member needs EXECUTE to forget');
for my $forged (0, -1, $token + 1, 9223372036854775807)
{
    is(sql(qq(SET ROLE app; SELECT interlock.idempotency_release('scope 77', 'mine', $forged))), 'f', "SEC-10: a forged token releases nothing: $forged");
    like(refused(qq(SET ROLE app; SELECT interlock.idempotency_complete('scope 77', 'mine', $forged, body => 'x'))), qr/^IL008/, 'SEC-10: and completes nothing');
}
is(sql(q(SET ROLE app; SELECT status, attempt FROM interlock.idempotency_lookup('scope 77', 'mine'))), 'pending|1', 'SEC-10: the claim is as it was');

# A dump has all of it
sql(q(SELECT interlock.idempotency_claim('scope 2', 'own', ttl => '1 min', stale_after => '1 us'), pg_sleep(0.01); SELECT interlock.idempotency_forget('scope 2', 'own', 'a test')));
sql(q(SELECT interlock.idempotency_claim('scope 2', 'own', ttl => '1 min', stale_after => '2 h')));
sql(q(SELECT interlock.idempotency_forget('large', 'export', 'too large for a test of dumps'), interlock.idempotency_claim('large', 'page')));
sql(q(SELECT interlock.idempotency_complete('large', 'page', token('page'), body => '\x00ff0d0a')));
sql('CREATE DATABASE copy');
$node->command_ok([ 'pg_dump', '-Fc', '-f', $node->basedir . '/dump', '-d', $node->connstr('postgres') ], 'dump');
$node->command_ok([ 'pg_restore', '-d', $node->connstr('copy'), $node->basedir . '/dump' ], 'restore');
is(sql(q(SELECT attempt, ttl, stale_after FROM interlock.idempotency WHERE key = 'own'), 'copy'), '1|00:01:00|02:00:00', 'restored: the times of a claim');
is(sql(q(SELECT outcome FROM interlock.idempotency_claim('poison', 'pill')), 'copy'), 'exhausted', 'restored: the limit of attempts');
is(sql(q(SELECT status, body FROM interlock.idempotency_lookup('large', 'page')), 'copy'), 'completed|\x00ff0d0a', 'restored: a body');
is(sql(q(SELECT id, key, status, reason FROM interlock.idempotency_audit WHERE scope <> 'large'), 'copy'), '1|own|pending|a test', 'restored: the audit');
is(sql(q(SELECT interlock.idempotency_forget('large', 'page', 'gone'); SELECT max(id) FROM interlock.idempotency_audit), 'copy'), "t\n3", 'restored: which goes on');

$node->stop;
done_testing();
