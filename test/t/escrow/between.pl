# Escrow counters when something happens between two steps of an adjustment (docs/internals/escrow.md): an error, a cancel, a kill or
# the end of a session, a promotion, a lock in the wrong order, a full memory, a backup. Whatever it is, the number is exact after it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Protocol;
use Server;

my $node = start_server(q(
interlock.sweeper = off
interlock.max_escrow_counters = 16
max_prepared_transactions = 10
max_wal_senders = 5
wal_level = replica
wal_writer_delay = 10s
deadlock_timeout = 20ms
restart_after_crash = on
));
$node->safe_psql('postgres', q(
CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL CHECK (stock BETWEEN 0 AND 1000), note text);
SELECT interlock.enable_escrow('item', 'stock', maximum => 1000);
CREATE TABLE sold (id int, n int);
));

my ($s1, $s2, $s3);
my $id = 0;
sub begin_sessions { ($s1, $s2, $s3) = map { Protocol::start($node, 'postgres') } 1 .. 3; return; }
sub sql { my ($sql) = @_; return $node->safe_psql('postgres', $sql); }
sub ask { my ($session, $sql) = @_; query($session, $sql); return answer_of($session); }
sub answer_of { my ($session) = @_; return $session->{error} // join(';', map { join('|', map { $_ // '' } @$_) } @{ $session->{rows} }); }
sub then_gets { my ($session) = @_; Protocol::answer($session); return answer_of($session); }
sub call { my ($delta, $wait, $row) = @_; return "SELECT outcome, remaining FROM interlock.try_adjust('item', " . ($row // $id) . ", 'stock', $delta, '" . ($wait // '0') . "')"; }
sub try_adjust { my ($session, @call) = @_; return ask($session, call(@call)); }
sub value { return sql("SELECT interlock.escrow_value('item', $id, 'stock')"); }
# With a counter that is in memory, and no part.
sub stock
{
    my ($value) = @_;
    $id++;
    sql("INSERT INTO item VALUES ($id, $value);" . join('', map { "SELECT interlock.adjust('item', $id, 'stock', $_);" } 1, -1) . "SELECT interlock.fold_escrow('item', $id)");
    return;
}
sub waits
{
    my ($session, $sql) = @_;
    Protocol::send_query($session, $sql);
    $node->poll_query_until('postgres', "SELECT cardinality(pg_blocking_pids($session->{pid})) > 0") or die 'does not wait';
    return;
}
# After a kill of the first session, which the server may not have noticed yet
sub is_back { poll_over_crash($node, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $s1->{pid})") or die 'the server did not come back'; begin_sessions(); return; }
sub crash { $node->stop('immediate'); $node->start; begin_sessions(); return; }
begin_sessions();

# Holds the part back: the adjustment has its grant in memory, and cannot insert into the journal.
sub holds_journal { ask($s3, 'BEGIN; LOCK TABLE interlock_internal.escrow_part IN SHARE MODE'); return; }

# --- Where it may not be called, and what is left from before -----------------------------------------------------------------------

stock(5);
is(ask($s1, 'BEGIN READ ONLY; ' . call(-1)), '25006', 'a read-only transaction');
ask($s1, 'ROLLBACK');
my $parallel = sql("SELECT name FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')");
sql(q(CREATE FUNCTION in_parallel(id int) RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS
    $$BEGIN RETURN (SELECT outcome FROM interlock.try_adjust('item', id, 'stock', -1)); END$$));
is(ask($s1, "SET $parallel = on; SELECT in_parallel($id)"), '25000', 'a parallel worker');
ask($s1, "RESET $parallel");
sql(qq(CREATE TABLE order_line (item_id int, n int);
    CREATE FUNCTION takes() RETURNS trigger LANGUAGE plpgsql AS
        \$\$BEGIN PERFORM interlock.adjust('item', NEW.item_id, 'stock', -NEW.n); RETURN NULL; END\$\$;
    CREATE TRIGGER takes AFTER INSERT ON order_line FOR EACH ROW EXECUTE FUNCTION takes()));
is(ask($s1, "INSERT INTO order_line VALUES ($id, 2)"), '', 'a trigger can take');
is(ask($s1, "INSERT INTO order_line VALUES ($id, 4)"), 'IL012', 'or refuse');
is(value(), 3, 'and has taken once');
sql(qq(CREATE TABLE owned (id int PRIMARY KEY, stock int NOT NULL); SELECT interlock.own_columns('owned', 'shop', '{stock}')));
is(ask($s1, "SELECT interlock.enable_escrow('owned', 'stock')"), '55000', 'a column that has an owner');
sql(q(SELECT interlock.release_columns('owned', '{stock}'), interlock.share_columns('owned', '{stock}', 'merge')));
is(ask($s1, "SELECT interlock.enable_escrow('owned', 'stock')"), '55000', 'or is shared');
sql("CREATE TABLE left_over (id int PRIMARY KEY, stock int NOT NULL); INSERT INTO left_over VALUES (1, 9); SELECT interlock.enable_escrow('left_over', 'stock')");
sql("SELECT interlock.adjust('left_over', 1, 'stock', -1)") for 1 .. 3;
sql('DROP TRIGGER ' . sql("SELECT string_agg(tgname, ' ON left_over; DROP TRIGGER ') FROM pg_trigger WHERE tgrelid = 'left_over'::regclass") . ' ON left_over');
like(ask($s1, "SELECT interlock.adjust('left_over', 1, 'stock', -1)"), qr/^55000/, 'without its triggers');
$node->psql('postgres', "UPDATE left_over SET stock = 4; SELECT interlock.enable_escrow('left_over', 'stock')", stderr => \my $warning);
like($warning, qr/WARNING:  discarded 2 changes of escrow counters/, 'their parts are forgotten with a warning');
is(sql("SELECT interlock.escrow_value('left_over', 1, 'stock')"), 4, 'enabled again: the row counts, and no part from before');
is(sql("SELECT outcome, remaining FROM interlock.try_adjust('left_over', 1, 'stock', -5)"), 'insufficient|4', 'for adjustments, too');

# --- Savepoints, plain updates and deletes while parts are open --------------------------------------------------------------------

stock(1);
ask($s1, 'BEGIN; SAVEPOINT a');
is(try_adjust($s1, 2), 'adjusted|3', 'a return in a savepoint');
is(try_adjust($s1, -2), 'pending|1', 'ESC-4: pays for no take of the same transaction');
ask($s1, 'ROLLBACK TO a');
is(try_adjust($s1, -2), 'insufficient|1', 'ESC-4: and is gone with the savepoint');
is(try_adjust($s1, -1), 'adjusted|0', 'what there was can be taken outside of it');
ask($s1, 'SAVEPOINT b; ' . call(5));
is(sql(call(-1)), 'pending|0', 'another transaction waits for both');
ask($s1, 'ROLLBACK TO b; COMMIT');
is(value(), 0, 'ESC-4: the take alone is committed');

stock(5);
ask($s1, 'BEGIN; ' . call(-2));
is(ask($s2, "UPDATE item SET stock = $_, note = 'a' WHERE id = $id"), '55000', "ESC-11: stock = $_ while a part is open") for 'stock - 1', 4, 7;
is(ask($s2, "INSERT INTO item VALUES ($id, 4) ON CONFLICT (id) DO UPDATE SET stock = excluded.stock"), '55000', 'ESC-11: ON CONFLICT');
is(ask($s2, "UPDATE item SET id = $id, stock = 5, note = 'b' WHERE id = $id"), '', 'ESC-11: a save of the whole row, as it was read, passes and does not wait');
ask($s1, 'COMMIT');
is(ask($s2, "UPDATE item SET id = $id, stock = 5, note = 'c' WHERE id = $id"), '', 'also after the commit of the part');
is(value(), 3, 'ESC-11: and changes no number');
sql("SELECT interlock.fold_escrow('item', $id)");
is(ask($s2, "UPDATE item SET id = $id, stock = 5, note = 'd' WHERE id = $id"), '55000', 'ESC-11: but after the fold it is an old value');

stock(5);
sql(call(-2));
for my $statement ("DELETE FROM item WHERE id = $id", 'TRUNCATE item', "UPDATE item SET id = -1 WHERE id = $id")
{
    is(ask($s1, "BEGIN; $statement; ROLLBACK"), '', "$statement, rolled back");
    is(value(), 3, 'ESC-12: leaves row and part');
    is(sql(call(-4)), 'insufficient|3', 'and the number');
}
ask($s1, "BEGIN; DELETE FROM item WHERE id = $id; INSERT INTO item VALUES ($id, 9)");
is(try_adjust($s1, -9), 'adjusted|0', 'ESC-12: deleted and inserted again in one transaction');
ask($s1, 'ROLLBACK');
is(sql(call(-3)), 'adjusted|0', 'which rolls back: the old number');

# --- An error or a kill between grant and part ------------------------------------------------------------------------------------

stock(3);
holds_journal();
ask($s1, 'SET lock_timeout = 100');
is(try_adjust($s1, -2), '55P03', 'ESC-5: the part cannot be inserted in time');
ask($s1, 'RESET lock_timeout');
ask($s1, 'BEGIN; SAVEPOINT a');
waits($s1, call(-2));
is(sql(call(-2)), 'pending|1', 'ESC-5: what is granted is not there for others before its part is');
sql("SELECT pg_cancel_backend($s1->{pid})");
is(then_gets($s1), '57014', 'a cancel');
is(sql("SELECT remaining::int, at_most::int FROM interlock.escrow WHERE key = '{$id}'"), '3|3', 'ESC-5: gives the grant back, once, before its transaction ends');
ask($s1, 'ROLLBACK TO a');
ask($s3, 'COMMIT');
is(try_adjust($s1, -3), 'adjusted|0', 'and all can be taken');
ask($s1, 'ROLLBACK');
is(sql("SELECT remaining::int, at_most::int FROM interlock.escrow WHERE key = '{$id}'"), '3|3', 'ESC-5: nothing was given back twice');
ask($s2, "BEGIN; DELETE FROM item WHERE id = $id");
ask($s1, "SET lock_timeout = 100");
is(ask($s1, "SELECT outcome FROM interlock.try_adjust('item', $id, 'stock', -1, NULL)"), 'pending', 'ESC-5: lock_timeout at the gate');
ask($s1, 'RESET lock_timeout');
ask($s2, 'ROLLBACK');
is(try_adjust($s1, -3), 'adjusted|0', 'takes nothing');

stock(3);
holds_journal();
waits($s1, call(-2));
sql("SELECT pg_terminate_backend($s1->{pid})");
ok($node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $s1->{pid})"), 'a session is terminated');
is(sql("SELECT remaining::int, at_most::int FROM interlock.escrow WHERE key = '{$id}'"), '3|3', 'ESC-7: after its grant, before its part');
ask($s3, 'COMMIT');
begin_sessions();
holds_journal();
waits($s1, call(-2));
kill 'KILL', $s1->{pid};
is_back();
is(value(), 3, 'ESC-7: kill -9 after the grant, before the part');
is(try_adjust($s2, -3), 'adjusted|0', 'nothing of it is left');

# --- Between part and commit, and between the commit record and the end ----------------------------------------------------------------

stock(3);
ask($s1, 'BEGIN');
try_adjust($s1, -2);
kill 'KILL', $s1->{pid};
is_back();
is(value(), 3, 'ESC-7: kill -9 after the part, before the commit');
is(try_adjust($s2, -3), 'adjusted|0', 'nothing of it is left');

# A commit waits for a standby that does not exist after its commit record is written, and before others see it.
sub waits_for_a_standby
{
    my ($session, $sql) = @_;
    ask($session, 'SET synchronous_commit = on');
    Protocol::send_query($session, $sql);
    $node->poll_query_until('postgres', "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = $session->{pid}") or die 'does not wait for a standby';
    return;
}
sub wants_standby
{
    my ($names) = @_;
    $node->append_conf('postgresql.conf', "synchronous_standby_names = '$names'");
    $node->reload;
    $node->poll_query_until('postgres', "SELECT current_setting('synchronous_standby_names') = '$names'") or die;
    return;
}
stock(3);
wants_standby('nobody');
ask($_, 'SET synchronous_commit = local') for $s1, $s2, $s3;
waits_for_a_standby($s1, call(2));
is(try_adjust($s2, -5), 'pending|3', 'ESC-2: a return that has its commit record is not there before others see it');
is(ask($s2, "SELECT interlock.escrow_value('item', $id, 'stock')"), 3, 'as the value says');
waits_for_a_standby($s3, call(-3));
is(try_adjust($s2, -1), 'pending|0', 'nor is a take decided');
kill 'KILL', $s1->{pid};
is_back();
is(value(), 2, 'ESC-7: kill -9 after the commit record, before others see it: both are committed');
ask($_, 'SET synchronous_commit = local') for $s1, $s2, $s3;
is(try_adjust($s2, -2), 'adjusted|0', 'and count');
ask($s2, "SELECT interlock.adjust('item', $id, 'stock', 3)");
waits_for_a_standby($s1, call(-1));
wants_standby('');
is(then_gets($s1), 'adjusted|2', 'the wait for a standby ends');
is(try_adjust($s2, -3) . ' ' . try_adjust($s2, -2), 'insufficient|2 adjusted|0', 'and with it what was undecided');

# --- Commits that do not wait for the disk ----------------------------------------------------------------------------------------------

stock(1);
ask($_, 'SET synchronous_commit = off') for $s1, $s2;
is(try_adjust($s1, 4), 'adjusted|5', 'a return that does not wait for the disk');
ask($s2, 'SET synchronous_commit = on');
is(try_adjust($s2, -5), 'adjusted|0', 'a take that rests on it, and waits');
crash();
is(value(), 0, 'ESC-22: after a crash both are there');
my $lost = 0;
for (1 .. 5)
{
    stock(1);
    ask($_, 'SET synchronous_commit = off') for $s1, $s2;
    try_adjust($s1, 4);
    ask($s2, 'BEGIN; ' . call(-5) . "; INSERT INTO sold VALUES ($id, 5); COMMIT");
    crash();
    my $state = sql("SELECT interlock.escrow_value('item', $id, 'stock') || ' ' || (SELECT count(*) FROM sold WHERE id = $id)");
    like($state, qr/^(?:1 0|5 0|0 1)$/, 'ESC-22: and if neither waits, the take is never there alone');
    $lost++ if $state ne '0 1';
}
note("lost $lost of 5");

# --- Locks in the wrong order ------------------------------------------------------------------------------------------------------------

stock(5);
stock(5);
my ($x, $y) = ($id - 1, $id);
ask($_, 'BEGIN') for $s1, $s2;
try_adjust($s1, -2, '0', $x);
ask($s2, "DELETE FROM item WHERE id = $y");
waits($s2, "DELETE FROM item WHERE id = $x");
Protocol::send_query($s1, "SELECT interlock.adjust('item', $y, 'stock', -2, NULL)");
my @answers = (then_gets($s1), then_gets($s2));
is(scalar(grep { $_ eq '40P01' } @answers), 1, 'ESC-19: one takes x and y, the other deletes y and x: a deadlock that is found');
ask($_, 'COMMIT') for $s1, $s2;
$id = $x;
is(sql("SELECT count(*), coalesce(min(interlock.escrow_value('item', id, 'stock')), 3) FROM item WHERE id IN ($x, $y)"),
    $answers[0] eq '40P01' ? '0|3' : '2|3', 'and one of them has done all of it');
$id = $y;

# --- Memory is full ------------------------------------------------------------------------------------------------------------------------

stock(5) for 1 .. 17;
my $first = $id - 16;
ask($s1, 'BEGIN');
is(ask($s1, "SELECT count(*) FROM generate_series($first, $id - 1) i, interlock.try_adjust('item', i, 'stock', -1) WHERE outcome = 'adjusted'"), 16, 'one transaction has all entries');
ask($s2, 'BEGIN');
is(try_adjust($s2, -2), 'adjusted|3', 'ESC-14: memory is full: the row is changed');
waits($s3, call(-4));
ask($s1, 'COMMIT');
my $s4 = Protocol::start($node, 'postgres');
waits($s4, call(-3));
ask($s2, 'ROLLBACK');
my @taken = sort(then_gets($s3), then_gets($s4));
# pending, while the other one has not ended its commit
like("@taken", qr/^adjusted\|[12] (?:insufficient|pending)\|[12]$/, 'ESC-14: one that goes by the row and one that loads an entry meanwhile: one of them gets its pieces');
is(value(), $taken[0] =~ /1$/ ? 1 : 2, 'once');

# --- Limits that change ------------------------------------------------------------------------------------------------------------------

stock(5);
ask($s1, 'BEGIN');
try_adjust($s1, -3);
waits($s2, "SELECT interlock.enable_escrow('item', 'stock', minimum => 0, maximum => 900)");
ask($s1, 'COMMIT');
is(then_gets($s2), '', 'ESC-17: another maximum waits for open parts');
is(try_adjust($s1, 899), 'insufficient|2', 'and counts then');
is(try_adjust($s1, 898), 'adjusted|900', 'to the last piece');
is(try_adjust($s1, -898), 'adjusted|2', 'returned');
ask($s1, 'BEGIN');
try_adjust($s1, -1);
waits($s2, "SELECT interlock.disable_escrow('item', 'stock')");
ask($s1, 'ROLLBACK');
is(then_gets($s2), '', 'ESC-17: disable_escrow, too');
is(sql("SELECT stock FROM item WHERE id = $id"), 2, 'and the row has what the parts had');
is(sql("SELECT count(*) FROM interlock_internal.escrow_part"), 0, 'of all rows');
is(sql("SELECT interlock.enable_escrow('item', 'stock', maximum => 1000)"), '', 'enabled again');
is(try_adjust($s1, -3), 'insufficient|2', 'with what the row has');

# --- An oid that is used again ----------------------------------------------------------------------------------------------------------------

sql("CREATE TABLE gone (id int PRIMARY KEY, stock int NOT NULL); INSERT INTO gone VALUES (1, 10); SELECT interlock.enable_escrow('gone', 'stock')");
sql("SELECT interlock.adjust('gone', 1, 'stock', -1)") for 1 .. 3;
my $oid = sql("SELECT 'gone'::regclass::oid");
sql('DROP TABLE gone');
sql('VACUUM pg_class'); # or the dead row keeps the oid in use
$node->stop;
command_ok([ 'pg_resetwal', '-o', $oid - 20, '-D', $node->data_dir ], 'oids begin below that of a table that was dropped');
$node->start;
begin_sessions();
for (1 .. 40) { last if sql('SELECT lo_create(0)') >= $oid - 1; }
sql('CREATE TABLE next (id int PRIMARY KEY, stock int NOT NULL); INSERT INTO next VALUES (1, 2)');
is(sql("SELECT 'next'::regclass::oid"), $oid, 'another table has its oid');
sql("SELECT interlock.enable_escrow('next', 'stock')");
is(sql("SELECT interlock.escrow_value('next', 1, 'stock')"), 2, 'ESC-16: and none of its parts');
is(sql("SELECT outcome, remaining FROM interlock.try_adjust('next', 1, 'stock', -3)"), 'insufficient|2', 'nor its number');
is(sql("SELECT outcome, remaining FROM interlock.try_adjust('next', 1, 'stock', -2)"), 'adjusted|0', 'but its own');

# --- Folds ---------------------------------------------------------------------------------------------------------------------------------------

stock(5);
ask($s1, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
ask($s2, "SELECT interlock.adjust('item', $id, 'stock', -1)");
is(ask($s1, "SELECT stock, interlock.escrow_value('item', $id, 'stock') FROM item WHERE id = $id"), '5|4', 'a snapshot');
ask($s2, "BEGIN; SELECT interlock.fold_escrow('item', $id)");
waits($s3, "SELECT interlock.fold_escrow('item', $id)");
is(sql(call(-1)), 'adjusted|3', 'ESC-9: an adjustment waits for no fold');
ask($s2, 'COMMIT');
is(then_gets($s3), 1, 'ESC-9: a second fold has what came since');
sql('VACUUM interlock_internal.escrow_part');
sql('VACUUM item');
is(ask($s1, "SELECT stock, interlock.escrow_value('item', $id, 'stock') FROM item WHERE id = $id"), '5|4', 'ESC-9: which no older snapshot sees, though the parts were vacuumed');
ask($s1, 'COMMIT');
is(sql("SELECT stock, interlock.escrow_value('item', $id, 'stock') FROM item WHERE id = $id"), '3|3', 'but the next one does');
sql(call(-1));
ask($s2, "BEGIN; SELECT interlock.fold_escrow('item', $id)");
ask($s1, 'BEGIN ISOLATION LEVEL SERIALIZABLE');
waits($s1, call(-1));
ask($s2, 'COMMIT');
is(then_gets($s1), '40001', 'ESC-9: under SERIALIZABLE a fold is a change of the row');
ask($s1, 'ROLLBACK');
is(value(), 2, 'and nothing is lost');

stock(1);
ask($s1, 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM item');
sql(call(3));
is(try_adjust($s1, -2), '40001', 'under SERIALIZABLE no take rests on a return that its snapshot does not see');
ask($s1, 'ROLLBACK');
is(sql("SELECT remaining::int, at_most::int FROM interlock.escrow WHERE key = '{$id}'"), '4|4', 'and it leaves nothing');

# --- Backups under load, and a promotion ------------------------------------------------------------------------------------------------------------

$id++;
sql("INSERT INTO item VALUES ($id, 500)");
my $load = $node->basedir . '/load.sql';
append_to_file($load, "\\set delta random(-3, 2)\n\\set ends random(1, 5)\nBEGIN;\n"
    . "WITH a AS MATERIALIZED (SELECT outcome FROM interlock.try_adjust('item', $id, 'stock', CASE WHEN :delta = 0 THEN -1 ELSE :delta END))"
    . " INSERT INTO sold SELECT $id, -CASE WHEN :delta = 0 THEN -1 ELSE :delta END FROM a WHERE outcome = 'adjusted';\n"
    . "\\if :ends = 1\nROLLBACK;\n\\else\nCOMMIT;\n\\endif\n\\if :ends = 2\nSELECT interlock.fold_escrow('item', $id);\n\\endif\n");
my $sum = "SELECT interlock.escrow_value('item', $id, 'stock') + (SELECT coalesce(sum(n), 0) FROM sold WHERE id = $id)";
my $run = IPC::Run::start([ 'pgbench', '-n', '-c', 4, '-T', 600, '-f', $load, $node->connstr('postgres') ], '>', \my $out, '2>', \my $errors);
$node->poll_query_until('postgres', "SELECT count(*) > 20 FROM sold WHERE id = $id") or die 'no load';
$node->backup('backup');
my $dump = $node->basedir . '/dump';
$node->command_ok([ 'pg_dump', '-Fd', '-j', 2, '-f', $dump, $node->connstr('postgres') ], 'a dump by two jobs under load');
$run->kill_kill;
sql('CREATE DATABASE copy');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-j', 2, '-d', $node->connstr('copy'), $dump ], 'restored by two jobs');
is($node->safe_psql('copy', $sum), 500, 'ESC-18: has what was sold and what is left of one snapshot');
is(sql($sum), 500, 'as the server itself');
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($node, 'backup');
$copy->start;
is($copy->safe_psql('postgres', $sum), 500, 'ESC-18: and so has a base backup that was taken under load');
$copy->safe_psql('postgres', "SELECT interlock.adjust('item', $id, 'stock', 3)"); # all may be sold
is($copy->safe_psql('postgres', "SELECT outcome FROM interlock.try_adjust('item', $id, 'stock', -interlock.escrow_value('item', $id, 'stock'))"), 'adjusted', 'which can sell all that is left');
$copy->stop;

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
stock(10);
sql("SELECT interlock.adjust('item', $id, 'stock', $_)") for -1, -1, 2, -3;
sql('BEGIN; ' . call(-2) . "; PREPARE TRANSACTION 'take'");
sql('BEGIN; SAVEPOINT a; ' . call(-1) . '; ROLLBACK TO a; ' . call(3) . "; PREPARE TRANSACTION 'return'");
ask($s1, 'BEGIN; ' . call(-4));
$node->wait_for_catchup($standby);
$node->stop('immediate');
$standby->promote;
sub promoted { my ($sql) = @_; return $standby->safe_psql('postgres', $sql); }
is(promoted("SELECT stock, interlock.escrow_value('item', $id, 'stock') FROM item WHERE id = $id"), '10|7', 'ESC-8: promoted with parts that are not folded');
is(promoted(call(-6)), 'pending|5', 'with a prepared take in doubt');
is(promoted(call(991)), 'pending|5', 'and a prepared return');
is(promoted(call(-11)), 'insufficient|5', 'no more than that');
promoted("SELECT interlock.fold_escrow('item', $id)");
promoted("COMMIT PREPARED 'take'; COMMIT PREPARED 'return'");
is(promoted(call(-8)), 'adjusted|0', 'ESC-8: what was decided after the promotion counts once');
promoted("SELECT interlock.fold_escrow('item', $id)");
is(promoted("SELECT stock, interlock.escrow_value('item', $id, 'stock') FROM item WHERE id = $id"), '0|0', 'in the row, too');
$standby->stop;

done_testing();
