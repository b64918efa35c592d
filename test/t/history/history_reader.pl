
# HIS-21: a reader of what is new in a history meets each entry once, in the order of its row: while sessions write, roll back
# and commit in any order, with a prepared transaction, over a crash and a restart, on a standby, and waked by notifications.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
max_prepared_transactions = 5
));
$node->start;

sub sql { return $node->safe_psql('postgres', $_[0]); }

# A reader keeps its position and what it has met, in one transaction with the reading.
sql(q(
    CREATE EXTENSION pg_interlock;
    CREATE TABLE doc (id int PRIMARY KEY, n int NOT NULL DEFAULT 0);
    INSERT INTO doc SELECT generate_series(1, 20);
    SELECT interlock.enable_history('doc', notify => 'on');
    CREATE TABLE reader (name text PRIMARY KEY, up_to text);
    CREATE TABLE met (name text, turn bigint GENERATED ALWAYS AS IDENTITY, id bigint, key int, n int);
    CREATE FUNCTION read_news(reader_name text, page int, again boolean = false) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE
            position text;
            news record;
            count bigint := 0;
        BEGIN
            SELECT up_to INTO position FROM reader WHERE name = reader_name FOR UPDATE;
            FOR news IN SELECT * FROM interlock.history_since('doc', position, page) LOOP
                INSERT INTO met (name, id, key, n) VALUES (reader_name, news.id, (news.key->>'id')::int, (news.row_data->>'n')::int);
                count := count + 1;
                position := news.up_to;
            END LOOP;
            UPDATE reader SET up_to = position WHERE name = reader_name;
            IF again THEN RAISE EXCEPTION 'the reader fails'; END IF;
            RETURN count;
        END $$;
    CREATE PROCEDURE read_on(reader_name text, page int) LANGUAGE plpgsql AS $$
        BEGIN
            WHILE read_news(reader_name, page) > 0 LOOP
                COMMIT;
            END LOOP;
        END $$;
    INSERT INTO reader SELECT name, interlock.history_position() FROM unnest('{all,pages,small}'::text[]) name;
));

my %page = (all => 'NULL', pages => '7', small => '1');
sub read_all
{
    sql("CALL read_on('$_', $page{$_})") for sort keys %page;
}
sub differences
{
    return sql(q(
        SELECT string_agg(name || ' ' || wrong, ', ' ORDER BY name, wrong) FROM (
            SELECT name, 'missed ' || count(*) AS wrong FROM doc_history h CROSS JOIN reader r
             WHERE NOT EXISTS (SELECT FROM met m WHERE m.name = r.name AND m.id = h.id) GROUP BY 1
            UNION ALL
            SELECT name, 'twice ' || count(*) - count(DISTINCT id) FROM met GROUP BY 1 HAVING count(*) <> count(DISTINCT id)
            UNION ALL
            SELECT name, 'order of a row' FROM (SELECT name, n < lag(n) OVER (PARTITION BY name, key ORDER BY turn) AS back FROM met) b WHERE back GROUP BY 1) d));
}

# --- Writers in any order ------------------------------------------------------------------------

# n grows with each write of a row, so that the order of its entries can be told.
my $writer = $node->basedir . '/writer.sql';
append_to_file($writer, q(
\set a random(1, 20)
\set b random(1, 20)
\set rolled random(1, 5)
BEGIN;
UPDATE doc SET n = n + 1 WHERE id = least(:a, :b);
SAVEPOINT s;
UPDATE doc SET n = n + 1 WHERE id = greatest(:a, :b);
\if :rolled = 1
ROLLBACK TO s;
\endif
\if :rolled = 2
ROLLBACK;
\else
COMMIT;
\endif
));
my @pgbench = ('pgbench', '--no-vacuum', '--client=6', '--jobs=1', '--transactions=60', '--file=' . $writer, $node->connstr('postgres'));
my ($out, $error) = ('', '');
my $load = IPC::Run::start(\@pgbench, '>', \$out, '2>', \$error);
my $readings = 0;
while ($load->pumpable)
{
    sql(join ';', map { "SELECT read_news('$_', $page{$_})" } sort keys %page);
    $node->psql('postgres', "SELECT read_news('all', NULL, true)") if $readings % 3 == 0;
    $readings++;
    $load->pump_nb;
}
ok($load->finish, 'the writers end') or diag $error;
read_all();
is(differences(), '', "each entry once and in order, by $readings readings while others write");
cmp_ok(sql('SELECT count(*) FROM doc_history'), '>', 300, 'there were entries');

# --- Prepared transactions, a crash, a restart ---------------------------------------------------

# Without a notification: a transaction that has sent one cannot be prepared
my ($status, undef, $refused) = $node->psql('postgres', "BEGIN; UPDATE doc SET n = n + 1 WHERE id = 1; PREPARE TRANSACTION 'p'");
like($refused, qr/cannot PREPARE a transaction that has executed LISTEN, UNLISTEN, or NOTIFY/, 'a notification cannot be prepared');
sql("SELECT interlock.enable_history('doc')");
sql("BEGIN; UPDATE doc SET n = n + 1 WHERE id = 1; PREPARE TRANSACTION 'committed'");
sql("BEGIN; UPDATE doc SET n = n + 1 WHERE id = 2; PREPARE TRANSACTION 'rolled back'");
sql('UPDATE doc SET n = n + 1 WHERE id > 2');
read_all();
is(sql("SELECT count(*) FROM met WHERE name = 'small'"), sql('SELECT count(*) FROM doc_history'), 'what is not prepared');
my $open = $node->background_psql('postgres', on_error_stop => 0);
$open->query_safe('BEGIN; UPDATE doc SET n = n + 1 WHERE id = 3');
sql('UPDATE doc SET n = n + 1 WHERE id > 3');
sql("SELECT read_news('small', 1), read_news('pages', 7)"); # inside of a page
$node->stop('immediate');
$node->start;
eval { $open->quit };
sql('UPDATE doc SET n = n + 1 WHERE id > 3');
read_all();
is(differences(), '', 'after a crash');
$node->restart;
sql("COMMIT PREPARED 'committed'; ROLLBACK PREPARED 'rolled back'");
read_all();
is(differences(), '', 'what was prepared comes when it is committed');
is(sql("SELECT n FROM met WHERE name = 'all' AND key = 1 ORDER BY turn DESC LIMIT 1"), sql('SELECT n FROM doc WHERE id = 1'), 'with its value');

# --- Waked by notifications ----------------------------------------------------------------------

sub waked
{
    my ($notify, $statements) = @_;
    sql("SELECT interlock.enable_history('doc', notify => '$notify')");
    my $got = $node->safe_psql('postgres', "LISTEN interlock_history;\n$statements;\nSELECT 1;");
    return join ' ', sort $got =~ /"interlock_history" with payload "(.*)" received/g;
}
is(waked('on', 'UPDATE doc SET n = n + 1'), '{"table": "public.doc"}', 'one for a transaction');
is(waked('on', 'BEGIN; UPDATE doc SET n = n + 1 WHERE id = 1; SAVEPOINT s; UPDATE doc SET n = n + 1 WHERE id = 2; ROLLBACK TO s; UPDATE doc SET n = n + 1 WHERE id = 2; COMMIT'),
    '{"table": "public.doc"}', 'with savepoints, too');
is(waked('on', 'BEGIN; SAVEPOINT s; UPDATE doc SET n = n + 1 WHERE id = 2; ROLLBACK TO s; COMMIT'), '', 'none for what is rolled back');
is(waked('full', 'UPDATE doc SET n = n + 1 WHERE id < 3; DELETE FROM doc WHERE id = 20'),
    '{"table": "public.doc", "key": {"id": 1}} {"table": "public.doc", "key": {"id": 20}} {"table": "public.doc", "key": {"id": 2}}', 'full: each row');
is(waked('off', 'UPDATE doc SET n = n + 1'), '', 'off');
sql("SELECT interlock.enable_history('doc', ignore_columns => '{n}', notify => 'on')");
is($node->safe_psql('postgres', "LISTEN interlock_history;\nUPDATE doc SET n = n + 1;\nSELECT 1;"), '1', 'what is ignored wakes nobody');
sql("SELECT interlock.enable_history('doc')");
# the ignored write was not recorded, and n went on without an entry: that is no matter of the order

read_all();
is(differences(), '', 'and read');

# --- On a standby --------------------------------------------------------------------------------

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
my $position = sql('SELECT interlock.history_position()');
$open = $node->background_psql('postgres', on_error_stop => 0);
$open->query_safe('BEGIN; UPDATE doc SET n = n + 1 WHERE id = 1; SAVEPOINT s; UPDATE doc SET n = n + 1 WHERE id = 2');
sql('UPDATE doc SET n = n + 1 WHERE id = 5');
$node->wait_for_catchup($standby);
my $since = sub { $standby->safe_psql('postgres', "SELECT count(*), max(up_to) FROM interlock.history_since('doc', '$_[0]')") };
my ($count, $up_to) = split /\|/, $since->($position);
is($count, 1, 'a standby: what is committed');
$open->query_safe('COMMIT');
$open->quit;
$node->wait_for_catchup($standby);
($count) = split /\|/, $since->($up_to);
is($count, 2, 'and what was open then, once');
like($standby->safe_psql('postgres', 'SELECT interlock.history_position()'), qr/^\d+:\d+:[\d,]*$/, 'it has a position');

done_testing();
