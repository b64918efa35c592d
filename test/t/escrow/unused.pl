# Counters that the sweeper cannot fold, of a table that is locked or a column that has no triggers, and one with more parts than
# can be folded at once: others are folded meanwhile.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $counters = 3000;
my $parts = 2_500_000;
my $node = start_server("max_locks_per_transaction = 512\ninterlock.sweeper = off");
sub ask { return $node->safe_psql('postgres', $_[0]); }
sub sweep { ask("ALTER SYSTEM SET interlock.sweeper = $_[0]"); $node->reload; return; }

# How many transactions a run has needed, with some of ours, after one that has seen what is there.
sub transactions_of_a_run
{
    my $run = sub {
        my $runs = ask('SELECT coalesce(max(runs), 0) FROM interlock.sweeper');
        ok($node->poll_query_until('postgres', "SELECT count(interlock_internal.wake_sweeper()) >= 0 AND
            (SELECT coalesce(max(runs), 0) > $runs FROM interlock.sweeper)"), 'the sweeper runs');
        return ask(q(SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'postgres'));
    };
    my $before = $run->();
    return $run->() - $before;
}

ask(qq(
    CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL);
    INSERT INTO item SELECT g, 100 FROM generate_series(1, $counters) g;
    SELECT interlock.enable_escrow('item', 'stock');
    CREATE TABLE other (id int PRIMARY KEY, stock int NOT NULL);
    INSERT INTO other VALUES (1, 101), (2, 51);
    SELECT interlock.enable_escrow('other', 'stock')));
# A counter that is adjusted for the first time needs no part.
my $adjust = "SELECT count(interlock.adjust('item', g, 'stock', 1)) FROM generate_series(1, $counters) g";
ask($adjust);
ask(q(SELECT interlock.adjust('other', 1, 'stock', -1), interlock.adjust('other', 2, 'stock', -1)));
my $left = q(SELECT sum(parts) FROM interlock.escrow WHERE rel = 'item'::regclass);

# A table that is locked
ask($adjust);
my $locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; LOCK TABLE item');
sweep('on');
cmp_ok(transactions_of_a_run(), '<', $counters / 2, 'a table that is locked is tried once');
ask(q(SELECT interlock.adjust('other', 1, 'stock', -1)));
ok($node->poll_query_until('postgres', 'SELECT stock = 99 FROM other WHERE id = 1'), 'another is folded meanwhile');
is(ask($left), $counters, 'its own parts wait');
$locker->query_safe('COMMIT');
$locker->quit;
ok($node->poll_query_until('postgres', $left, '0'), 'and are folded then');

# A column that is no longer guarded
sweep('off');
ask($adjust);
ask(q(DROP TRIGGER zzzz_interlock_escrow_stock ON item; DROP TRIGGER zzz_interlock_truncate_stock ON item));
sweep('on');
ask(q(SELECT interlock.adjust('other', 1, 'stock', -1)));
ok($node->poll_query_until('postgres', 'SELECT stock = 98 FROM other WHERE id = 1'), 'another is folded meanwhile');
is(ask('SELECT count(*) FROM interlock_internal.escrow_part'), $counters, 'its parts stay');
ask('DROP TABLE item');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock_internal.escrow_part'), 'until the table is dropped');

# More parts than one transaction of the sweeper can fold
sweep('off');
ask(q(SELECT interlock.adjust('other', 1, 'stock', 2)));
$node->stop;
$node->start;
my $insert = 'INSERT INTO interlock_internal.escrow_part (counter, number, amount) SELECT c.id, g - 10000000, %s FROM interlock_internal.escrow_counter c,
    generate_series(1, %d) g WHERE c.rel = \'other\'::regclass AND c.key = \'{%d}\'';
ask(sprintf($insert, '1 - g % 2 * 2', $parts, 1));
ask(sprintf($insert, 'CASE WHEN g <= 100000 THEN -1 ELSE 1 END', 200_000, 2)); # the first of them alone would leave the limits
ask('ALTER TABLE other ADD CHECK (stock >= 0)');
sweep('on');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock_internal.escrow_part'), 'many parts of one counter are folded');
is(ask('SELECT array_agg(stock ORDER BY id) FROM other'), '{100,50}', 'all of them');
is(ask("SELECT count(*) FROM interlock.sweeper WHERE last_error IS NOT NULL OR failed > 0"), 0, 'without an error');

# Parts that were folded stay in the index while an old snapshot may see them: who has very many of them waits, and nobody else
sweep('off');
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM other');
ask(sprintf($insert, '1 - g % 2 * 2', 1_200_000, 1));
ask('DELETE FROM interlock_internal.escrow_part');
ask(q(SELECT interlock.adjust('other', 1, 'stock', -1), interlock.adjust('other', 2, 'stock', -1)));
sweep('on');
ok($node->poll_query_until('postgres', 'SELECT stock = 49 FROM other WHERE id = 2'), 'a counter behind one with a million dead parts is folded');
is(ask(q(SELECT stock, interlock.escrow_value('other', 1, 'stock') FROM other WHERE id = 1)), '100|99', 'that one waits, and has its value');
$reader->query_safe('COMMIT');
$reader->quit;
ask('VACUUM interlock_internal.escrow_part');
ok($node->poll_query_until('postgres', 'SELECT stock = 99 FROM other WHERE id = 1'), 'for the end of the snapshot');
is(ask("SELECT count(*) FROM interlock.sweeper WHERE last_error IS NOT NULL OR failed > 0"), 0, 'without an error');

$node->stop;
done_testing();
