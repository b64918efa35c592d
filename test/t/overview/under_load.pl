# While the loads of script/demo run, each view names what they do to themselves: the table, the key, the holder, who waits.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use IPC::Run qw(start);
use POSIX ();
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server("max_connections = 60\nfsync = off\ninterlock.sweeper = off");

# Runs a load of the demo until the views have been asked; each of them may take a while to meet the moment.
sub during
{
    my ($setup, $load, $sql, $views, @options) = @_;
    $node->safe_psql('postgres', 'DROP DATABASE IF EXISTS load WITH (FORCE)');
    $node->safe_psql('postgres', 'CREATE DATABASE load');
    $node->safe_psql('load', slurp_file("demo/load/$setup.sql"));
    $node->safe_psql('load', "CREATE EXTENSION pg_interlock; SELECT interlock.reset_contention(); $sql");
    my ($out, $error) = ('', '');
    my $pgbench = start [ 'pgbench', '-n', '-c', 8, '-j', 2, '-T', 100_000, @options, '-h', $node->host, '-p', $node->port, '-f', "demo/load/$load.load", 'load' ],
        '<', \undef, '>', \$out, '2>', \$error;
    for (my $i = 0; $i < @$views; $i += 2)
    {
        ok($node->poll_query_until('load', "SELECT EXISTS (SELECT FROM interlock.$views->[$i + 1])"), "$load: $views->[$i]");
    }
    $pgbench->signal('INT');
    $pgbench->finish;
    is($pgbench->full_result, POSIX::SIGINT, "$load: it was running all the time") || diag($error);
    return;
}

during('config', 'config_counter', q(SELECT interlock.enable_versioning('config')), [
    'the table whose writers collide' => q(contention WHERE rel = 'config'::regclass AND kind = 'versioning' AND conflicts > 0),
    'what guards it' => q(guards WHERE rel = 'config'::regclass AND mechanism = 'versioning' AND enforced),
    'who configured it' => q(audit WHERE kind = 'configuration' AND action = 'enable_versioning' AND table_name ~ 'config' AND role = current_user) ]);

during('blind_updates', 'blind_updates_without', q(SELECT interlock.enable_versioning('note')), [
    'the table that is written blindly' => q(blind_updates WHERE rel = 'note'::regclass AND overwrote > 0),
    'and how often' => q(contention WHERE rel = 'note'::regclass AND blind_updates > 100),
    'the advice' => q(advise() WHERE rel = 'note'::regclass AND finding ~ 'without comparing' AND advice IS NOT NULL) ]);

during('coupons', 'coupons_with', q(SELECT interlock.define_transitions('coupon', 'status', '{"unused": ["redeemed"]}')), [
    'the table whose transitions come too late' => q(contention WHERE rel = 'coupon'::regclass AND kind = 'transitions' AND refusals > 0),
    'what may follow what' => q(transitions WHERE rel = 'coupon'::regclass AND from_state = 'unused' AND to_state = 'redeemed') ]);

# An editor who comes back marks the document again, and on a fast machine each comes back within a second.
during('documents', 'documents_with', q(SELECT interlock.enable_marker('document', '100 ms')), [
    'the holder of a document' => q(held WHERE kind = 'row_marker' AND rel = 'document'::regclass AND holder ~ '^editor [0-9]+$' AND expires_at > now()),
    'and which one' => q(row_locks WHERE rel = 'document'::regclass AND (key ->> 'id')::int BETWEEN 1 AND 40 AND live),
    'how many are refused' => q(contention WHERE rel = 'document'::regclass AND kind = 'marker' AND refusals > 0),
    'those that nobody releases' => q(row_locks WHERE NOT live) ]);

during('bank', 'bank_with', 'SELECT 1', [
    'the account that somebody waits for' => q(held WHERE kind = 'key_lock' AND name ~ '^account:[0-9]+$' AND waiters > 0 AND pid IS NOT NULL),
    'who waits, for whom, and who is at the head' => q(blocking WHERE kind = 'key_lock' AND name ~ '^account:' AND blocked_by IS NOT NULL AND head_pid <> pid),
    'the class of the keys' => q(contention WHERE kind = 'key' AND key_class = 'account' AND waits > 0 AND wait_time > interval '0') ], '--max-tries=0');

during('parts', 'parts_with', 'SELECT 1', [
    'the part of a product that is being made' => q(held WHERE kind = 'lease' AND name ~ '^product:7' AND waiters > 0),
    'who waits for it' => q(blocking WHERE kind = 'lease' AND name ~ '^product:7'),
    'the queue' => q(lease_waiters WHERE key ~ '^product:7'),
    'the class of the leases' => q(contention WHERE kind = 'lease' AND key_class = 'product' AND waits > 0),
    'how many leases there are' => q(usage WHERE used > 0) ]);

during('payments', 'payments_with', q(SELECT interlock.define_idempotency_scope('pay', 'job', stale_after => '200 ms')), [
    'the payment that is being made' => q(held WHERE kind = 'idempotency_claim' AND name ~ '^pay:payment [0-9]+$'),
    'how often one is sent again' => q(contention WHERE kind = 'idempotency' AND key_class = 'pay' AND replays > 0),
    'and taken over from a worker that has died' => q(contention WHERE kind = 'idempotency' AND key_class = 'pay' AND takeovers > 0) ]);

$node->stop;
done_testing();
