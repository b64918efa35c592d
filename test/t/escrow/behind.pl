# How long parts of escrow counters wait for the sweeper, in view escrow and in advise().
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Server;

my $node = start_server('max_prepared_transactions = 2');
sub sql { return $node->safe_psql('postgres', join ";\n", @_); }

sql(q(CREATE TABLE item (id int PRIMARY KEY, stock numeric(10, 2) NOT NULL)),
    q(INSERT INTO item VALUES (1, 100), (2, 100)),
    q(SELECT interlock.enable_escrow('item', 'stock')));

my $state = q(SELECT parts, remaining, folded_at IS NOT NULL, behind > '0 s' FROM interlock.escrow WHERE key = '{1}');
my $advice = q(SELECT rel, finding, evidence FROM interlock.advise() WHERE finding LIKE 'parts of column%');

# The first change is made in the row, those that meet it are parts.
sql(q(SELECT interlock.adjust('item', 1, 'stock', -1)), q(SELECT interlock.adjust('item', 1, 'stock', -0.5)));
ok($node->poll_query_until('postgres', $state, '0|98.50|t|'), 'folded, and nothing waits; digits are those of the column')
    or diag(sql($state));
is(sql($advice), '', 'and there is nothing to advise');

# Somebody has the row locked
my $session = $node->background_psql('postgres');
$session->query_safe('BEGIN; SELECT FROM item WHERE id = 1 FOR UPDATE');
my $before = sql(q(SELECT folded_at FROM interlock.escrow WHERE key = '{1}'));
sql(q(SELECT interlock.adjust('item', 1, 'stock', -1)), q(SELECT interlock.adjust('item', 2, 'stock', -1)), q(SELECT interlock.adjust('item', 2, 'stock', -1)));
ok($node->poll_query_until('postgres', q(SELECT behind > '11 s' FROM interlock.escrow WHERE key = '{1}'), 't'), 'a part waits for the lock of the row');
is(sql($state), '1|97.50|t|t', 'the view says so');
is(sql(q(SELECT folded_at FROM interlock.escrow WHERE key = '{1}')), $before, 'and when it was folded last');
is(sql(q(SELECT parts, behind FROM interlock.escrow WHERE key = '{2}')), '0|', 'another row does not wait');
like(sql($advice), qr/^item\|parts of column "stock" wait for the sweeper.*\|1 parts of 1 rows, for up to 00:00:1\d/, 'advise() finds it');
$session->query_safe('ROLLBACK');
$session->quit;
ok($node->poll_query_until('postgres', $state, '0|97.50|t|'), 'folded when the lock is gone');
is(sql($advice), '', 'and nothing is advised any more');

# A change that is undecided while the sweeper folds has waited since that fold at the latest
sql(q(BEGIN), q(SELECT interlock.adjust('item', 1, 'stock', -1)), q(PREPARE TRANSACTION 'p'));
sql(q(SELECT interlock.adjust('item', 1, 'stock', -1)));
ok($node->poll_query_until('postgres', q(SELECT parts FROM interlock.escrow WHERE key = '{1}'), '0'), 'folded beside a prepared transaction');
$session = $node->background_psql('postgres');
$session->query_safe('BEGIN; SELECT FROM item WHERE id = 1 FOR UPDATE');
sql(q(COMMIT PREPARED 'p'));
is(sql($state), '1|95.50|t|t', 'whose part waits from its commit on');
$session->query_safe('ROLLBACK');
$session->quit;
ok($node->poll_query_until('postgres', $state, '0|95.50|t|'), 'and is folded');

$node->stop;
done_testing();
