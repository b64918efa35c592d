# ADV-3: each finding of advise() that comes from counters, made by the load that it is about; and none in a quiet database.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server("interlock.sweeper = off\ninterlock.max_leases = 128\ninterlock.key_names = 64\nmax_locks_per_transaction = 256");
sub ask { return $node->safe_psql('postgres', $_[0]); }

# The findings, from their text on.
sub finds
{
    my ($name, $pattern, $evidence, $setup) = @_;
    ask('SELECT interlock.reset_contention()');
    is(ask('SELECT count(*) FROM interlock.advise()'), 0, "$name: nothing before") or diag(ask('TABLE interlock.contention'));
    ask($setup);
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $found = ask('SELECT finding, evidence FROM interlock.advise()');
    like($found, qr/^[^\n]*$pattern[^\n]*\|$evidence[^\n]*$/, $name);
    my $advice = ask('SELECT advice FROM interlock.advise()');
    is($node->psql('postgres', $advice), 0, "$name: the advice can be run") or diag($advice);
    return $advice;
}

# A loop in which each call commits
sub repeat
{
    my ($times, $body) = @_;
    return "DO \$do\$ BEGIN FOR i IN 1 .. $times LOOP $body; END LOOP; END \$do\$";
}

my $table = q("a b"."it's; DROP TABLE x; --");
ask(qq(
    CREATE SCHEMA "a b";
    CREATE TABLE $table (a int, "the ""key" text, n int, PRIMARY KEY ("the ""key", a));
    INSERT INTO $table SELECT i, 'k', 0 FROM generate_series(1, 4) i;
    CREATE TABLE doc (id int PRIMARY KEY, n int, state text DEFAULT 'a');
    INSERT INTO doc SELECT i, 0 FROM generate_series(1, 200) i;
    CREATE TABLE page (id int PRIMARY KEY);
    INSERT INTO page SELECT i FROM generate_series(1, 200) i;
    CREATE FUNCTION hostile() RETURNS regclass LANGUAGE sql STABLE AS \$\$ SELECT oid::regclass FROM pg_class WHERE relname LIKE 'it''s%' AND relkind = 'r' \$\$;
    SELECT interlock.enable_versioning(hostile()), interlock.enable_versioning('doc'), interlock.enable_marker('page', '15 min');
    SELECT interlock.define_idempotency_scope('pay''s', model => 'job', ttl => '2 hours', stale_after => '1 s', max_attempts => 9)));
is(ask('SELECT * FROM interlock.advise()'), '', 'ADV-3: a quiet database has no finding');
ask(repeat(400, q(PERFORM interlock.versioned_update('doc', 1, version, '{}') FROM doc WHERE id = 1)));
ask(repeat(300, q(PERFORM interlock.try_versioned_update('doc', 1, 1, '{}'))));
is(ask('SELECT * FROM interlock.advise()'), '', 'nor one with few calls, whatever they do');

# --- Conflicts ----------------------------------------------------------------------------------------------------

my $stale = sub { my ($all, $stale) = @_; return join(';', repeat($all - $stale, q(PERFORM interlock.versioned_update(hostile(), '{"a": 1, "the \"key": "k"}', version, '{}') FROM ) . $table . q( WHERE a = 1)),
    repeat($stale, q(PERFORM interlock.try_versioned_update(hostile(), '{"a": 1, "the \"key": "k"}', 0, '{}')))); };
ask('SELECT interlock.reset_contention()');
ask($stale->(1000, 50));
is(ask('SELECT * FROM interlock.advise()'), '', '5 % conflicts are none too many');
# Functions and operators of strangers that a pasted statement would find first, if it did not name the server's.
ask(q(CREATE FUNCTION public.to_jsonb(record) RETURNS jsonb LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'a stranger runs as %', current_user; END$$));
finds('conflicts', 'more than 5 % of the calls are conflicts \(versioning\): read again before each attempt, and from about 30 % on lock the row first', '60 of 1000 calls, 6.0 %, since', $stale->(1000, 60));

# The key's type may have a cast to json, which its owner has made.
ask(q(DROP FUNCTION public.to_jsonb(record); CREATE TYPE colour AS ENUM ('red'); CREATE TABLE paint (colour colour PRIMARY KEY, n int); INSERT INTO paint VALUES ('red', 0);
    SELECT interlock.enable_versioning('paint'), interlock.reset_contention()));
ask(repeat(940, q(PERFORM interlock.versioned_update('paint', 'red', version, '{}') FROM paint)));
ask(repeat(60, q(PERFORM interlock.try_versioned_update('paint', 'red', 0, '{}'))));
like(ask('SELECT advice FROM interlock.advise()'), qr{^SELECT \* FROM interlock.select_for_update\('paint', \.\.\.,}, 'no statement reads keys of a type of the owner');
ask(q(DROP TABLE paint; CREATE FUNCTION public.is_table(regclass, regclass) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'a stranger'; END$$;
    CREATE OPERATOR public.= (LEFTARG = regclass, RIGHTARG = regclass, FUNCTION = public.is_table)));

# --- Waits ---------------------------------------------------------------------------------------------------------

# Sessions that change one row and hold it for a moment, without a conflict.
ask('SELECT interlock.reset_contention()');
my @sessions = map { $node->background_psql('postgres') } 1 .. 5;
$_->query_until(qr/begun/, q(\echo begun
    DO $$ BEGIN FOR i IN 1 .. 205 LOOP
        PERFORM interlock.select_for_update('doc', '{7}'::int[]); PERFORM pg_sleep(0.008); COMMIT; END LOOP; END $$;
)) for @sessions;
$_->quit for @sessions;
like(ask(q(SELECT finding, evidence, advice FROM interlock.advise())),
    qr/^calls wait for a row more than 10 ms on average \(select_for_update\): docs\/guide\/hot-rows.md is for numbers that all change, docs\/choosing.md for the rest\|\d+ of 1025 calls, [0-9:.]+ in all, since .*\|SELECT \* FROM interlock.blocking WHERE kind = 'row' AND rel OPERATOR\(pg_catalog.=\) 'doc'::pg_catalog.regclass$/, 'a row that sessions queue for')
    or diag(ask('TABLE interlock.contention'));
{
    my $waiter = $node->background_psql('postgres');
    $waiter->query_safe(q(BEGIN; SELECT FROM doc WHERE id = 7 FOR UPDATE));
    my $second = $node->background_psql('postgres');
    $second->query_until(qr/begun/, "\\echo begun\nUPDATE doc SET n = 1 WHERE id = 7;\n");
    ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM interlock.blocking'), 'a session waits');
    is($node->psql('postgres', ask('SELECT advice FROM interlock.advise()')), 0, 'the advice can be run, and finds no operator of a stranger');
    $_->quit for $waiter, $second;
}
ask('DROP OPERATOR public.= (regclass, regclass)');

# --- What is rightly refused ----------------------------------------------------------------------------------------

ask(q(CREATE TABLE coupon (id int PRIMARY KEY, state text);
    INSERT INTO coupon SELECT i, 'open' FROM generate_series(1, 100) i;
    SELECT interlock.define_transitions('coupon', 'state', '{"open": ["held", "used"], "held": ["open", "used"]}', '{open}'), interlock.reset_contention()));
ask(repeat(1000, q(PERFORM interlock.try_transition('coupon', i % 20 + 1, 'open', 'used'))));
is(ask(q(SELECT calls, conflicts, refusals FROM interlock.contention WHERE rel = 'coupon'::regclass)), '1000|0|980', 'TRN-53: a coupon that is used is no conflict');
is(ask('SELECT * FROM interlock.advise()'), '', 'TRN-53: and no finding');
ask(repeat(20, q(PERFORM interlock.try_transition('coupon', 50, 'open', 'held'))));
finds('TRN-53: a state that may still be left', 'more than 5 % of the calls are conflicts \(transitions\)', '60 of 1000 calls, 6.0 %',
    join(';', repeat(60, q(PERFORM interlock.try_transition('coupon', 50, 'open', 'used'))), repeat(940, q(PERFORM interlock.try_transition('coupon', 1, 'open', 'used')))));

# --- Counters ---------------------------------------------------------------------------------------------------------

ask(q(CREATE TABLE ticket (id int PRIMARY KEY, stock int NOT NULL); INSERT INTO ticket VALUES (1, 6), (2, 0); SELECT interlock.enable_escrow('ticket', 'stock')));
ask(q(SELECT interlock.adjust('ticket', 1, 'stock', -1)));    # the first change of a counter locks the row
ask('SELECT interlock.reset_contention()');
ask(repeat(1000, q(PERFORM interlock.try_adjust('ticket', 2, 'stock', -1))));
is(ask(q(SELECT calls, conflicts, refusals FROM interlock.contention WHERE rel = 'ticket'::regclass)), '1000|0|1000', 'ESC-53: sold out is a refusal');
is(ask('SELECT * FROM interlock.advise()'), '', 'ESC-53: and no finding');
{
    my $taker = $node->background_psql('postgres');
    $taker->query_safe(q(BEGIN; SELECT interlock.adjust('ticket', 1, 'stock', -5)));
    finds('ESC-53: calls that are pending', 'more than half of the calls of the escrow counters are pending: open transactions hold what is left', '600 of 1000 calls, 60.0 %',
        join(';', repeat(600, q(PERFORM interlock.try_adjust('ticket', 1, 'stock', -1))), repeat(400, q(PERFORM interlock.try_adjust('ticket', 2, 'stock', -1)))));
    $taker->quit;
}
ask('DROP TABLE coupon, ticket; SELECT interlock.reset_contention()');

# --- Blind updates ----------------------------------------------------------------------------------------------------

finds('blind updates', 'statements write rows without comparing their version: a stale one overwrites the other', '100 rows since', repeat(100, 'UPDATE doc SET n = i WHERE id = i'));
is(ask('SELECT count(*) FROM interlock.advise()'), 0, 'and is followed');
is($node->psql('postgres', 'UPDATE doc SET n = 1 WHERE id = 1'), 3, 'blind updates are refused then');
ask(q(SELECT interlock.enable_versioning('doc')));

# --- Markers and leases that expire ---------------------------------------------------------------------------------------

my $advice = finds('markers that expire', 'more than 5 % of the markers expire under their holders', '120 expired at 1\d\d calls, [0-9.]+ %',
    join(';', repeat(120, q(PERFORM interlock.lock_row('page', i, 'A', ttl => '1 ms'))), 'SELECT pg_sleep(0.02)', 'SELECT interlock.sweep()'));
is($advice, q(SELECT interlock.configure('page', '{"marker": {"ttl": "00:30:00"}}')), 'twice the time');
is(ask(q(SELECT settings ->> 'ttl' FROM interlock.guards WHERE rel = 'page'::regclass)), '00:30:00', 'which it sets');
finds('leases that expire', 'more than 5 % of the leases of class "it\'s" expire under their holders', '99 expired at 100 calls, 99.0 %',
    repeat(100, q(PERFORM interlock.acquire_lease('it''s:1', '1 ms'); PERFORM pg_sleep(0.005))));
finds('leases that are renewed late', 'leases of class "late" are renewed after half of their ttl: a pause of the holder loses them', '30 of 110 renewals since',
    join(';', repeat(80, q(PERFORM interlock.renew_lease('late:' || i, token, '1 hour') FROM interlock.acquire_lease('late:' || i, '1 hour'))),
        repeat(30, q(PERFORM interlock.renew_lease('late:late', token, '1 hour') FROM interlock.acquire_lease('late:late', '1 ms'), pg_sleep(0.005); PERFORM interlock.break_lease('late:late', 'test')))));
ask(q(SELECT interlock.break_leases('%', 'test')));
finds('callers that poll', 'more than half of the calls for leases of class "busy" are refused: callers that poll could wait', '999 of 1000 calls, 99.9 %',
    repeat(1000, q(PERFORM interlock.acquire_lease('busy', '1 hour'))));

# --- Keys and claims ----------------------------------------------------------------------------------------------------------

my $holder = $node->background_psql('postgres');
$holder->query_safe(q(SELECT interlock.lock_key('slow:1', scope => 'session')));
# On a slow machine the time is over before some of them wait.
finds('waits that are given up', 'more than 5 % of the waits for keys of class "slow" \(key\) are given up', '(?:5[1-9] of 1000 calls, 5\.\d|60 of 1000 calls, 6\.0) %',
    join(';', repeat(940, q(PERFORM interlock.try_lock_key('slow:' || i + 9))) =~ s/\+ 9/% 20 + 2/r, repeat(60, q(PERFORM interlock.try_lock_key('slow:1', wait => '10 ms')))));
$holder->quit;
$advice = finds('stale claims', 'more than 5 % of the claims of scope "pay\'s" become stale and are taken over', '7 of 107 claims, 6.5 %',
    join(';', repeat(100, q(PERFORM interlock.idempotency_claim('pay''s', 'k' || i, null); COMMIT)), 'SELECT pg_sleep(1.1)', repeat(7, q(PERFORM interlock.idempotency_claim('pay''s', 'k' || i, null); COMMIT))));
is(ask(q(SELECT model, ttl, stale_after, max_attempts FROM interlock.idempotency_scope)), 'job|02:00:00|00:00:02|9', 'the scope keeps its other settings');

# --- Sizes ----------------------------------------------------------------------------------------------------------------------

ask(q(SELECT interlock.break_leases('%', 'test')));
$advice = finds('a size', 'interlock.max_leases is nearly too small', 'leases: \d+ of 128; from 80 % on', repeat(110, q(PERFORM interlock.acquire_lease('size/' || i, '1 hour'))));
is($advice, 'ALTER SYSTEM SET interlock.max_leases = 256 -- by a superuser, who restarts the server', 'it gets twice that');
ask(q(SELECT interlock.break_leases('%', 'test')));
is(ask('SELECT count(*) FROM interlock.advise()'), 0, 'which is over when there is room');

# --- What a role is shown --------------------------------------------------------------------------------------------------------

ask($stale->(1000, 60));
ask(q(CREATE ROLE nobody; CREATE ROLE reader; GRANT USAGE ON SCHEMA "a b" TO reader; GRANT SELECT ON ) . $table . q( TO reader));
is(ask('SET ROLE nobody; SELECT count(*) FROM interlock.advise()'), 0, 'a role without privileges sees none of it');
is(ask('SET ROLE reader; SELECT count(*) FROM interlock.advise()'), 1, 'one with SELECT does');

# --- Without preload ---------------------------------------------------------------------------------------------------------------

ask(q(SELECT interlock.disable_marker('page')));
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\nclient_min_messages = error");
$node->restart;
is(ask(q(SELECT finding, evidence FROM interlock.advise() WHERE rel IS NULL)), 'shared_preload_libraries does not have the library: nothing counts how often writers collide|guarded tables: 2', 'nothing is counted without preload');

done_testing();
