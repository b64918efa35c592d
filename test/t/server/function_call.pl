# The functions called by the protocol's message for function calls, without a statement: what libpq's PQfn sends.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Protocol;
use Server;
use Test::More;

my $node = start_server();
$node->safe_psql('postgres', q(
    CREATE TABLE task (id int PRIMARY KEY, body text);
    SELECT interlock.enable_versioning('task');
    SELECT interlock.enable_marker('task');
    SELECT interlock.enable_history('task');
    INSERT INTO task VALUES (1, 'x');
));

my %oids = map { split / / } split /\n/, $node->safe_psql('postgres',
    q(SELECT proname || ' ' || max(oid) FROM pg_proc WHERE pronamespace = 'interlock'::regnamespace
      AND '"any"'::regtype != ALL (proargtypes) GROUP BY proname));

sub begin_call { my ($session, $function, @values) = @_; return send_call($session, $oids{$function} // $function, @values); }
sub call { my ($session, @call) = @_; begin_call($session, @call); return answer($session); }

sub acquire { my ($session, $key, $wait) = @_; return call($session, 'acquire_lease', $key, '30 s', $wait // '0', undef, 'exclusive', 'ttl', 'f', undef, 'f'); }
sub token { return $_[0] =~ /^\(acquired,(\d+),/ ? $1 : undef; }

# --- Leases ---------------------------------------------------------------------------

my ($one, $two) = (start($node), start($node));

my $lease = acquire($one, 'report');
my $token = token($lease);
ok($token, "a lease is acquired: $lease");
like(acquire($two, 'report'), qr/^\(held,,/, 'another session is told that it is held');
is(call($one, 'release_lease', 'report', $token + 1, undef), 'f', 'another token releases nothing');
ok(call($one, 'renew_lease', 'report', $token, '1 h', undef, undef), 'it is renewed');
query($one, 'BEGIN');
is(call($one, 'assert_lease', 'report', $token), '', 'it is asserted in a transaction');
query($one, 'COMMIT');
is(call($one, 'assert_lease', 'report', $token + 1), 'IL006', 'not with another token');

begin_call($two, 'acquire_lease', 'report', '30 s', '1 min', undef, 'exclusive', 'ttl', 'f', undef, 'f');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM interlock.lease_waiters'), 'another session waits');
is(call($one, 'release_lease', 'report', $token, undef), 't', 'it is released');
cmp_ok(token(answer($two)), '>', $token, 'and goes to who has waited, with a larger token');

is(acquire($one, undef), '22004', 'no key');
is(call($one, 'acquire_lease', 'report', '30 s', '0', undef, 'shard', 'ttl', 'f', undef, 'f'), '22023', 'no such mode');
ok(token(acquire($one, 'other')), 'the session goes on after errors');

# --- Key locks ------------------------------------------------------------------------

query($one, 'BEGIN');
is(call($one, 'lock_key', 'account:1', 'exclusive', undef, 'transaction'), '', 'a key is locked');
is(call($two, 'lock_key', 'account:1', 'exclusive', '0', 'transaction'), '55P03', 'another session cannot');
is($node->safe_psql('postgres', 'SELECT key FROM interlock.key_locks'), 'account:1', 'its name is seen');
query($one, 'COMMIT');
is(call($two, 'lock_key', 'account:1', 'exclusive', '0', 'transaction'), '', 'until the transaction ends');
query($one, 'BEGIN');
query($one, 'SELECT 1 / 0');
is(call($one, 'lock_key', 'account:1', 'exclusive', undef, 'transaction'), '25P02', 'not in a transaction that has failed');
query($one, 'ROLLBACK');

# --- Rows -----------------------------------------------------------------------------

is(call($one, 'versioned_update', 'task', '1', '1', '{"body": "y"}'), 2, 'a row is changed');
is(call($one, 'versioned_update', 'task', '1', '1', '{"body": "z"}'), 'IL001', 'not twice from one version');
is(call($one, 'save_row', 'task', '1', 'me', '{}', undef, 'f'), 'IL005', 'nor without the marker');
is($node->safe_psql('postgres', 'SELECT version, body FROM task'), '2|y', 'and nothing is lost');

# --- All others -----------------------------------------------------------------------

# What a function can ask about its caller is not there: neither its arguments' expressions nor a place for a set of rows.
my %of_type = (text => '1', regclass => 'task', 'interlock.seconds' => '1 s', bigint => '1', integer => '1', jsonb => '{"body": "y"}',
    boolean => 't', 'name[]' => '{body}', 'text[]' => '{a}', 'timestamp with time zone' => 'now', name => 'body');
my @functions = split /\n/, $node->safe_psql('postgres', q(
    SELECT concat_ws('|', oid, proname, (SELECT string_agg(format_type(type, NULL), ',' ORDER BY n) FROM unnest(proargtypes) WITH ORDINALITY u(type, n)))
    FROM pg_proc WHERE pronamespace::regnamespace::text IN ('interlock', 'interlock_internal') AND prokind = 'f' ORDER BY oid));
my ($answers, $errors, @internal) = (0, 0);
for (@functions)
{
    my ($oid, $name, $types) = split /\|/;
    next if $name =~ /^disable/;
    my @types = split /,/, $types // '';
    for my $values ([ map { $of_type{$_} // '1' } @types ], [ (undef) x @types ])
    {
        call($two, $oid, @$values);
        $two->{error} ? $errors++ : $answers++;
        push @internal, "$name: $two->{error}" if ($two->{error} // '') =~ /^(XX000|42P22)/;
    }
}
cmp_ok($answers, '>', 20, "all functions, with values and with nulls: $answers answers");
cmp_ok($errors, '>', 20, "and $errors errors");
is_deeply(\@internal, [], 'none of them internal, or for want of a collation');

$_->{socket}->close for $one, $two;
$node->stop;
like(slurp_file($node->logfile), qr/database system is shut down/, 'the server ends as it should');
# Warnings are for bad calls of getapplock, and for writers that were not granted to a role.
unlike(slurp_file($node->logfile), qr/terminated by signal|WARNING:  (?!argument|unknown lock mode|writer)/, 'nothing has crashed, and nothing is left behind');

done_testing();
