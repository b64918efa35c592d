# HIS-66: partitions of a history over time. The sweeper creates and drops them, whoever has a transaction open; they are dumped and
# restored, and replicated to a standby and to a subscriber.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server(q(
interlock.sweeper_rescan = 1
max_prepared_transactions = 2
max_wal_senders = 5
max_replication_slots = 5
wal_level = logical));
sub sql { return $node->safe_psql('postgres', $_[0]); }

# The partitions with a range, oldest first
my $ranges = q(SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'doc_history'::regclass AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
    ORDER BY pg_get_expr(c.relpartbound, c.oid));
sub is_there { return sql("SELECT to_regclass('$_[0]') IS NOT NULL"); }

sub turn_sweeper
{
    my ($value) = @_;
    $node->append_conf('postgresql.conf', "interlock.sweeper = $value");
    $node->reload;
    $node->poll_query_until('postgres', "SELECT (state = 'off') = ('$value' = 'off') FROM interlock.sweeper WHERE database = current_database()")
        or die "the sweeper is not $value";
}

sql(q(CREATE TABLE doc (id int PRIMARY KEY, n int);
    SELECT interlock.enable_history('doc', keep_for => '4 seconds', partition_by => '2 seconds');
    INSERT INTO doc VALUES (1, 0)));
my ($first) = split /\n/, sql($ranges);

# --- The sweeper ----------------------------------------------------------------------------------------------------------

# A transaction that has written keeps all partitions, and other writers write.
sql('INSERT INTO doc VALUES (2, 0)');
my $open = $node->background_psql('postgres');
$open->query_safe('BEGIN; UPDATE doc SET n = n + 1 WHERE id = 1;');
ok($node->poll_query_until('postgres', q(SELECT last_run > (SELECT min(changed_at) + interval '8 seconds' FROM doc_history)
    FROM interlock.sweeper, interlock_internal.wake_sweeper() WHERE database = current_database())), 'the sweeper runs when the first partition is past retention');
is(is_there($first), 't', 'a transaction that has written keeps the partition');
is(sql('UPDATE doc SET n = n + 1 WHERE id = 2 RETURNING n'), 1, 'other writers write');
$open->query_safe('COMMIT;');
$open->quit;
sql('SELECT interlock_internal.wake_sweeper()');
ok($node->poll_query_until('postgres', "SELECT to_regclass('$first') IS NULL"), 'then the sweeper drops it');
ok($node->poll_query_until('postgres', "SELECT count(*) >= 2 FROM ($ranges) r"), 'and has created the partitions of later periods');
is(sql('SELECT last_error IS NULL FROM interlock.sweeper WHERE database = current_database()'), 't', 'nothing has failed');
sql('UPDATE doc SET n = n + 1');

# --- A prepared transaction -----------------------------------------------------------------------------------------------

turn_sweeper('off');
sql(q(CREATE TABLE kept (id int PRIMARY KEY);
    SELECT interlock.enable_history('kept', keep_for => '90 days', partition_by => '30 days');
    CREATE TABLE old PARTITION OF kept_history FOR VALUES FROM ('2001-01-01') TO ('2001-02-01');
    BEGIN; INSERT INTO kept VALUES (1); PREPARE TRANSACTION 'p'));
is(sql(q(SELECT dropped_partitions FROM interlock.trim_history('kept'))), 0, 'a prepared transaction keeps the partitions');
sql(q(COMMIT PREPARED 'p'));
is(sql(q(SELECT dropped_partitions FROM interlock.trim_history('kept'))), 1, 'until it is committed');
turn_sweeper('on');

# --- Dump and restore -----------------------------------------------------------------------------------------------------

my $structure = q(SELECT c.relname, pg_get_expr(c.relpartbound, c.oid), (SELECT count(*) FROM kept_history h WHERE h.tableoid = c.oid)
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'kept_history'::regclass ORDER BY 1);
my $expected = sql($structure);
my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump';
$node->command_ok(['pg_dump', '-Fc', '-f', $dump, $node->connstr('postgres')], 'dumped');
$node->safe_psql('postgres', 'CREATE DATABASE copy');
$node->command_ok(['pg_restore', '-d', $node->connstr('copy'), '--exit-on-error', $dump], 'restored');
sub copy { return $node->safe_psql('copy', $_[0]); }
is(copy($structure), $expected, 'a restored history has its partitions and entries');
is(copy(q(INSERT INTO kept VALUES (2); SELECT count(*) FROM kept_history)), 2, 'and goes on');
copy(q(CREATE TABLE old PARTITION OF kept_history FOR VALUES FROM ('2001-01-01') TO ('2001-02-01')));
ok($node->poll_query_until('copy', q(SELECT to_regclass('old') IS NULL FROM interlock_internal.wake_sweeper())), 'the sweeper drops partitions there');

# --- A subscriber ---------------------------------------------------------------------------------------------------------

turn_sweeper('off');
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init;
$subscriber->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'");
$subscriber->start;
$node->command_ok(['pg_dump', '-s', '-f', "$dump.sql", $node->connstr('postgres')], 'the schema is dumped');
$subscriber->command_ok(['psql', '-q', '-X', '-v', 'ON_ERROR_STOP=1', '-f', "$dump.sql", $subscriber->connstr('postgres')], 'a subscriber has it');
# a partition that the subscriber does not have
sql(q(CREATE TABLE newer PARTITION OF kept_history FOR VALUES FROM ('2002-01-01') TO ('2002-02-01');
    CREATE PUBLICATION kept FOR TABLE kept, kept_history WITH (publish_via_partition_root = true)));
my $publisher = $node->connstr('postgres') =~ s/'/''/gr;
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION kept CONNECTION '$publisher' PUBLICATION kept");
sql(q(INSERT INTO kept VALUES (3);
    INSERT INTO kept_history (key, changed_at, changed_by, operation, row_data, transaction, command)
    VALUES ('{"id": 1}', '2002-01-15', 'x', 'update', '{"id": 1}', 3, 0)));
ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 3 FROM kept_history'), 'entries arrive');
is($subscriber->safe_psql('postgres', q(SELECT tableoid::regclass FROM kept_history WHERE changed_at < '2020-01-01')), 'kept_history_default',
    'those without a partition in the default partition');
sql(q(SELECT dropped_partitions FROM interlock.trim_history('kept')));
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION kept DISABLE; ALTER SUBSCRIPTION kept SET (slot_name = NONE); DROP SUBSCRIPTION kept');
is($subscriber->safe_psql('postgres', q(SELECT count(*) > 0 FROM interlock.resync_sequences();
    INSERT INTO kept VALUES (4);
    SELECT trimmed FROM interlock.trim_history('kept'))), "t\n1", 'after the takeover, it writes and trims');

$subscriber->stop;
$node->stop;
done_testing();
