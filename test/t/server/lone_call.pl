# KEY-50: a call whose effect ends with its own statement warns, as the server warns of SET LOCAL. A call that could have an effect
# does not warn.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Protocol;
use Server;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_server('interlock.sweeper = off');
$node->safe_psql('postgres', q(
    CREATE TABLE doc (id int PRIMARY KEY, note text);
    INSERT INTO doc VALUES (1, 'a');
    SELECT interlock.enable_history('doc'), interlock.grant_writer('importer', current_user);
    SELECT interlock.enable_versioning('doc'), interlock.define_idempotency_scope('pay', model => 'job');
    CREATE FUNCTION lock_and_write() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
        PERFORM interlock.lock_key('a'); UPDATE doc SET note = note; END $$;
    CREATE FUNCTION lock_only() RETURNS void LANGUAGE sql AS $$ SELECT interlock.lock_key('a') $$;
    CREATE FUNCTION write_first() RETURNS text VOLATILE LANGUAGE sql AS $$ UPDATE doc SET note = note; SELECT 'a' $$;
    CREATE PROCEDURE lock_in_procedure() LANGUAGE plpgsql AS $$ BEGIN PERFORM interlock.lock_key('a'); COMMIT; END $$));
my $session = start($node);

# warns(NAME, WARNING): of what was sent; a warning or none.
sub warns
{
    my ($name, $expected) = @_;
    answer($session);
    is($session->{error}, undef, "$name: no error");
    is(join("\n", @{ $session->{warnings} }), $expected // '', "KEY-50: $name " . (defined $expected ? 'warns' : 'does not warn'));
    return;
}

my $released = '25P01 the lock is already released';
my %calls = (
    q(SELECT interlock.lock_key('a')) => $released,
    q(SELECT interlock.lock_key('a', wait => '1 s')) => $released,
    q(SELECT interlock.lock_keys('{a,b}')) => $released,
    q(SELECT interlock.lock_keys(ARRAY['a', 'b'], 'shared')) => $released,
    q(SELECT interlock.getapplock('r', 'Exclusive')) => $released,
    q(SELECT interlock.set_holder('anna')) => '25P01 the holder is already reset',
    q(SELECT interlock.set_writer('importer')) => '25P01 the writer is already reset',
    q(SELECT interlock.suppress_history('doc')) => '25P01 the history is already recorded again');

# As a router sends them
my %routed = map { s/^SELECT (.*)$/SELECT r FROM $1 r/r => $calls{$_} } keys %calls;
my $token = query($session, q(SELECT token FROM interlock.acquire_lease('a', '1 day')));
my $claim = query($session, q(SELECT token FROM interlock.idempotency_claim('pay', 'a')));
my @assertions = ("interlock.assert_lease('a', $token)", "interlock.idempotency_assert('pay', 'a', $claim)");
$routed{"SELECT * FROM $assertions[0]"} = '25P01 the lease is no longer asserted';
$routed{"SELECT * FROM $assertions[1]"} = '25P01 the claim is no longer asserted';
%calls = (%calls, %routed);

for my $call (sort keys %calls)
{
    send_query($session, $call);
    warns($call, $calls{$call});
    send_statement($session, $call);
    send_sync($session);
    warns("extended: $call", $calls{$call});
    query($session, 'BEGIN');
    send_query($session, $call);
    warns("in a block: $call");
    query($session, 'COMMIT');
    is_deeply($session->{warnings}, [], "KEY-50: and its COMMIT does not warn: $call");
    send_query($session, "$call; UPDATE doc SET note = note");
    warns("with another statement in one message: $call");
    for my $other ('UPDATE doc SET note = note', 'SELECT 1', "NOTIFY done")
    {
        send_statement($session, $call);
        send_statement($session, $other);
        send_sync($session);
        warns("in a pipeline before $other: $call");
        send_statement($session, $other);
        send_statement($session, $call);
        send_sync($session);
        warns("in a pipeline after $other: $call");
    }
}

send_query($session, 'SELECT lock_only()');
warns('a call in a function that is inlined', $released);
send_statement($session, 'SELECT interlock.lock_key($1)', 'a');
send_sync($session);
warns('a call with a parameter', $released);
query($session, 'SET plan_cache_mode = force_generic_plan');
send_statement($session, 'SELECT interlock.lock_keys(ARRAY[$1, $2])', 'a', 'b');
send_sync($session);
warns('a call with parameters in a generic plan', $released);

query($session, q(PREPARE lock AS SELECT r::void FROM interlock.lock_key('a') r));
query($session, 'BEGIN');
for my $statement ('EXECUTE lock', q(SELECT r::void FROM interlock.lock_key('a') r)) { send_query($session, $statement); warns("in a block: $statement"); }
send_statement($session, 'SELECT r::void FROM interlock.lock_key($1) r', 'a');
send_sync($session);
warns('in a block, with a parameter: a call in FROM');
query($session, 'COMMIT');
send_statement($session, 'SELECT r::void FROM interlock.lock_key($1::text) r', 'a');
send_sync($session);
warns('a call in FROM with a parameter', $released);
send_statement($session, 'SELECT r::void FROM interlock.assert_lease($1::text, $2::bigint) r', 'a', $token);
send_sync($session);
warns('an assertion in FROM with parameters', '25P01 the lease is no longer asserted');

# Calls that have an effect, or that may be part of something with an effect
for my $call (
    q(SELECT interlock.lock_key('a', scope => 'session')), q(SELECT interlock.getapplock('r', 'Exclusive', 'Session')),
    q(SELECT interlock.try_lock_key('a')), q(SELECT interlock.set_writer(NULL)), q(SELECT interlock.set_holder(NULL)),
    (map { "SELECT $_" } @assertions), "SELECT id FROM doc, $assertions[0]", "UPDATE doc SET note = note FROM $assertions[0]",
    q(SELECT interlock.versioned_update('doc', 1, (SELECT version FROM doc), '{"note": "b"}') FROM interlock.set_holder('anna')),
    q(SELECT write_first() FROM interlock.set_holder('anna')), q(SELECT 1 FROM interlock.set_holder('anna') WHERE write_first() = 'a'),
    q(SELECT 1 FROM interlock.set_holder('anna') WHERE EXISTS (SELECT FROM doc)), q(SELECT (SELECT note FROM doc LIMIT 1) FROM interlock.set_holder('anna')),
    q(SELECT 1 FROM interlock.lock_key(write_first())), q(SELECT 1 FROM interlock.lock_key((SELECT min(note) FROM doc))),
    q(SELECT 1 FROM interlock.set_holder('anna'), write_first()), q(SELECT 1 FROM ROWS FROM (interlock.set_holder('anna'), write_first())),
    q(SELECT 1 FROM interlock.set_holder('anna') FULL JOIN doc ON true), q(SELECT id FROM doc WHERE EXISTS (SELECT FROM interlock.set_holder('anna'))),
    q(WITH w AS (UPDATE doc SET note = note) SELECT 1 FROM interlock.set_holder('anna')), q(SELECT * FROM interlock.lock_key('a', scope => 'session')),
    q(SELECT * FROM interlock.set_writer(NULL)), q(SELECT interlock.lock_key('a') FROM doc), q(SELECT interlock.lock_key(write_first())), q(SELECT interlock.lock_key((SELECT note FROM doc))),
    q(SELECT interlock.lock_key('a'), write_first()), q(SELECT lock_and_write()), q(CALL lock_in_procedure()),
    q(DO $$ BEGIN PERFORM interlock.lock_key('a'); UPDATE doc SET note = note; END $$),
    q(UPDATE doc SET note = interlock.lock_key('a')::text), q(WITH w AS (UPDATE doc SET note = note RETURNING 1) SELECT interlock.lock_key('a') FROM w),
    q(WITH w AS (UPDATE doc SET note = note) SELECT interlock.lock_key('a')), q(UPDATE doc SET note = note FROM interlock.set_holder('anna')),
    q(EXPLAIN ANALYZE SELECT interlock.lock_key('a')), q(CREATE TEMP TABLE made AS SELECT interlock.lock_key('a')::text))
{
    send_query($session, $call);
    warns($call);
}
query($session, q(SELECT interlock.unlock_key('a'), interlock.releaseapplock('r', 'Session')));

# A call that raises leaves nothing behind
is(query($session, q(SELECT interlock.lock_key(''))), '22023', 'a call that raises');
send_query($session, 'UPDATE doc SET note = note');
warns('the next statement');
query($session, q(BEGIN; SAVEPOINT s; SELECT interlock.lock_key('a'); ROLLBACK TO s; COMMIT));
is_deeply($session->{warnings}, [], 'KEY-50: a block with a savepoint does not warn');

$node->stop;
done_testing();
