# Tables that Citus distributes. Debian has no Citus: the tables of its catalog are made here, with the columns that are read. So a
# table is distributed as far as pg_interlock can see, and statements on it are not routed.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server(join("\n", 'citus.override_table_visibility = on', "interlock.sweep_naptime = '100 ms'"));

sub sql { return $node->safe_psql('postgres', join(";\n", @_)); }

# The error or notice of a statement: its SQLSTATE, message and hint.
sub message
{
    my ($statement) = @_;
    my ($status, $out, $error) = $node->psql('postgres', "\\set VERBOSITY verbose\n$statement");
    return $error;
}

sub refused
{
    my ($statement, $subject) = @_;
    like(message($statement), qr/0A000: $subject cannot be used with table "\w+", which Citus distributes\nHINT/, "refused: $statement");
}

sql('CREATE TABLE later (id int PRIMARY KEY, n int)',
    q(SELECT interlock.enable_versioning('later')), 'INSERT INTO later VALUES (1, 0)');

sql('SET allow_system_table_mods = on',
    q(CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass NOT NULL, partmethod "char" NOT NULL, partkey text,
        colocationid int NOT NULL DEFAULT 1, repmodel "char" NOT NULL, autoconverted boolean NOT NULL DEFAULT false)),
    q(CREATE TABLE pg_catalog.pg_dist_shard (logicalrelid regclass NOT NULL, shardid bigint NOT NULL, shardstorage "char" NOT NULL,
        shardminvalue text, shardmaxvalue text)),
    q(CREATE FUNCTION distribute(rel regclass, partmethod "char" = 'h', repmodel "char" = 's') RETURNS void LANGUAGE sql AS $$
        INSERT INTO pg_dist_partition (logicalrelid, partmethod, repmodel) VALUES (rel, partmethod, repmodel);
        UPDATE pg_class SET relname = relname WHERE oid = rel $$), # as Citus, it invalidates what is cached of the table
    q(CREATE FUNCTION undistribute(rel regclass) RETURNS void LANGUAGE sql AS $$
        DELETE FROM pg_dist_partition WHERE logicalrelid = rel;
        UPDATE pg_class SET relname = relname WHERE oid = rel $$));

# --- Functions are statements, which Citus sends to the shards -------------------------------------

sql('CREATE TABLE how (is_statement boolean)',
    q(CREATE FUNCTION note_how() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE context text;
        BEGIN
            GET DIAGNOSTICS context = PG_CONTEXT;
            INSERT INTO how VALUES (context ~ 'SQL statement "UPDATE ');
            RETURN NEW;
        END $$),
    'CREATE TRIGGER a BEFORE UPDATE ON later FOR EACH ROW EXECUTE FUNCTION note_how()');
my $update = q(SELECT interlock.versioned_update('later', 1, (SELECT version FROM later), '{"n": 1}'));
sql($update);
is(sql('DELETE FROM how RETURNING is_statement'), 'f', 'a function writes a table of this server without a statement');
is(sql($update, q(SELECT distribute('later')), $update, 'TABLE how') =~ s/^\d*\n//mgr, "f\nt", 'and a distributed table by one');

# --- What does not work is refused, when it is enabled and when it is used -------------------------

sql('CREATE TABLE plain (id int PRIMARY KEY, n int NOT NULL, note text, changed timestamptz NOT NULL DEFAULT now())',
    'CREATE TABLE child (id int PRIMARY KEY, plain int REFERENCES plain)',
    q(SELECT distribute('plain'), distribute('child')));
refused(q(SELECT interlock.enable_marker('plain')), 'enable_marker');
refused(q(SELECT interlock.enable_history('plain')), 'enable_history');
refused(q(SELECT interlock.enable_escrow('plain', 'n')), 'enable_escrow');
refused(q(SELECT interlock.guard_children('child', 'plain')), 'guard_children');
refused(q(SELECT interlock.own_columns('plain', 'erp', '{n}', 'skip')), 'own_columns with on_violation skip');
is(sql(q(SELECT interlock.own_columns('plain', 'erp', '{n}'))), '', 'own_columns raises an error where the writer is not known');
is(sql(q(SELECT interlock.define_transitions('plain', 'note', '{"a": ["b"]}'))), '', 'transitions are checked in the shards');
is(sql(q(SELECT undistribute('plain'), distribute('plain', 'n', 't')), q(SELECT interlock.enable_versioning('plain'))), "|\n",
    'a counter is the same in all copies of a reference table');
sql(q(SELECT interlock.disable_versioning('plain')));
refused(q(SELECT interlock.enable_versioning('plain', 'changed')), 'a time as the version');

sql('CREATE TABLE kept (id int PRIMARY KEY, n int NOT NULL DEFAULT 10, m int, changed timestamptz NOT NULL DEFAULT now())',
    q(SELECT interlock.enable_versioning('kept', 'changed'), interlock.enable_marker('kept'), interlock.enable_history('kept'),
        interlock.enable_escrow('kept', 'n'), interlock.own_columns('kept', 'erp', '{m}', 'skip', once_changed => true)),
    'INSERT INTO kept (id) VALUES (1)',
    q(SELECT distribute('kept', 'n', 't')));
refused(q(SELECT interlock.lock_row('kept', 1, 'anna')), 'enable_marker');
refused(q(SELECT interlock.claim_rows('kept', 'anna', 1)), 'enable_marker');
refused(q(SELECT interlock.adjust('kept', 1, 'n', -1)), 'enable_escrow');
refused(q(SELECT * FROM interlock.row_history('kept', 1)), 'enable_history');
refused(q(SELECT interlock.try_versioned_update('kept', 1, now(), '{"m": 1}')), 'a time as the version');
is(sql(q(SELECT string_agg(mechanism, ', ' ORDER BY mechanism) FROM interlock.guards
          WHERE rel = 'kept'::regclass AND 'Citus' = ANY (string_to_array(array_to_string(findings, ' '), ' ')))),
    'escrow, history, marker, ownership, versioning', 'advise and guards name each');
is(sql(q(SELECT undistribute('kept')), q(SELECT (interlock.lock_row('kept', 1, 'anna')).locked)), "\nt", 'undistributed again, all of it works');
is(sql(q(SELECT count(*) FROM interlock.advise('kept') WHERE finding ~ 'Citus')), 0, 'and nothing is found');

sql('CREATE TABLE parent (id int PRIMARY KEY)', 'CREATE TABLE line (id int PRIMARY KEY, parent int REFERENCES parent)',
    q(SELECT interlock.enable_versioning('parent'), interlock.guard_children('line', 'parent')),
    'INSERT INTO parent VALUES (1)', q(SELECT distribute('parent', 'n', 't')));
refused('INSERT INTO line VALUES (1, 1)', 'guard_children');
sql('CREATE TABLE parent_102020 (LIKE parent INCLUDING ALL)', 'INSERT INTO parent_102020 TABLE parent',
    'ALTER TABLE line DROP CONSTRAINT line_parent_fkey, ADD FOREIGN KEY (parent) REFERENCES parent_102020');
refused('INSERT INTO line VALUES (1, 1)', 'guard_children'); # as in a shard
sql('ALTER TABLE line DROP CONSTRAINT line_parent_fkey, ADD FOREIGN KEY (parent) REFERENCES parent', 'DROP TABLE parent_102020');
is(sql(q(SELECT finding FROM interlock.advise('line') WHERE finding ~ 'Citus')),
    'its rows are children of table parent, which Citus distributes: writes are refused', 'advise names such a parent');
sql(q(SELECT interlock.unguard_children('line', 'parent')), 'INSERT INTO line VALUES (1, 1)');
refused(q(SELECT interlock.guard_children('line', 'parent')), 'guard_children');

# --- The first version of a row ---------------------------------------------------------------------

like(message(q(INSERT INTO later VALUES (2, 0))), qr/0A000: first_version cannot be used .*"later".*HINT:  .*enable_versioning\('public.later', 'version'\) again/s,
    'the start of a table that was distributed later does not know what shards have deleted');
is(sql(q(SELECT severity, advice FROM interlock.advise('later') WHERE finding ~ 'Citus')),
    q(broken|SELECT interlock.enable_versioning('later', 'version')), 'advise says how to go on');
like(message(q(SELECT interlock.enable_versioning('later', 'version'))), qr/NOTICE: .*new rows of table "later" start at version 1/,
    'which ends the start, and says so');
is(sql('INSERT INTO later VALUES (2, 0) RETURNING version'), 1, 'new rows start at 1');
is(sql(q(SELECT count(*) FROM interlock.advise('later') WHERE severity = 'broken')), 0, 'nothing else is broken');

# --- Shards -----------------------------------------------------------------------------------------

sql('CREATE TABLE later_102008 (id int PRIMARY KEY, n int, version bigint NOT NULL DEFAULT 1)',
    'CREATE TABLE later_102009 (LIKE later_102008 INCLUDING ALL)',
    q(INSERT INTO pg_dist_shard SELECT 'later', n, 't' FROM generate_series(102008, 102010) n)); # one is on another server
is(sql(q(SELECT finding FROM interlock.advise() WHERE rel = 'later'::regclass AND finding ~ 'shard' ORDER BY 1)),
    join("\n", map { "shard later_$_ has no trigger that calls version_trigger('version', 'allow', 'move'): its writes are not checked" } 102008, 102009),
    'shards without the trigger of their table are found');
sql(map { "SELECT interlock.enable_versioning('later_$_')" } 102008, 102009);
is(sql(q(SELECT count(*) FROM interlock.advise() WHERE finding ~ 'shard')), 0, 'with the trigger they are guarded');
sql(q(SELECT interlock.define_transitions('later_102008', 'n', '{"0": [1]}')));
is(sql(q(SELECT rel, mechanism FROM interlock.guards WHERE findings::text ~ 'later_102009')), 'later|transitions',
    'a trigger of one shard alone is found, too');
sql('INSERT INTO later_102008 VALUES (1, 0)');
like(message(q(UPDATE later_102008 SET version = 7)), qr/DETAIL:  \{"table": "public.later", "key": \{"id": 1\}, /,
    'the detail of an error names the table, not the shard');
sql('CREATE TABLE later_7 (LIKE later_102008 INCLUDING ALL)', q(SELECT interlock.enable_versioning('later_7')), 'INSERT INTO later_7 VALUES (1, 0)');
like(message(q(UPDATE later_7 SET version = 7)), qr/DETAIL:  \{"table": "public.later_7", /, 'a table with such a name is no shard');

# --- The sweeper -------------------------------------------------------------------------------------

sql('CREATE TABLE seen (visibility text)',
    q(CREATE FUNCTION note_visibility() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO public.seen VALUES (current_setting('citus.override_table_visibility'));
        RETURN NEW;
    END $$),
    (map { "CREATE TABLE $_ (id int PRIMARY KEY); INSERT INTO $_ VALUES (1); SELECT interlock.enable_marker('$_')" } qw(job job_102012)),
    'CREATE TRIGGER a BEFORE UPDATE ON job_102012 FOR EACH ROW WHEN (NEW.lock_status = 0) EXECUTE FUNCTION note_visibility()',
    q(SELECT interlock.lock_row('job', 1, 'anna', '1 ms')),
    q(SELECT distribute('job')), q(INSERT INTO pg_dist_shard VALUES ('job', 102012, 't')),
    q(SELECT interlock.lock_row('job_102012', 1, 'anna', '1 ms')));
ok($node->poll_query_until('postgres', q(SELECT lock_status = 0 FROM job_102012)), 'an expired marker of a shard is released');
is(sql('SELECT DISTINCT visibility FROM seen'), 'off', 'by a worker that sees shards');
sql('SELECT interlock.sweep()');
is(sql('SELECT lock_status FROM job'), 1, 'the rows that the shell had before it was distributed are left alone');
is(sql(q(SELECT last_error FROM interlock.sweeper)), '', 'and no table fails');

# --- Foreign partitions ------------------------------------------------------------------------------

sql('CREATE EXTENSION postgres_fdw', 'CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw',
    'CREATE TABLE split (id int, state text) PARTITION BY RANGE (id)',
    'CREATE TABLE split_1 PARTITION OF split FOR VALUES FROM (1) TO (10)',
    'CREATE FOREIGN TABLE split_2 PARTITION OF split FOR VALUES FROM (10) TO (20) SERVER other');
sub foreign
{
    my ($statement) = @_;
    like(message($statement), qr/42809: partition "split_2" of table "split" is a foreign table\nHINT/, "refused: $statement");
}

foreign("SELECT interlock.$_") for
  q(enable_versioning('split')), q(define_transitions('split', 'state', '{"a": ["b"]}')), q(enable_marker('split')), q(enable_history('split')),
  q(enable_escrow('split', 'amount')), q(own_columns('split', 'erp', '{amount}')), q(require_lease('split')),
  q(configure('split', '{"versioning": {"version_column": "version"}}'));

sql('DROP FOREIGN TABLE split_2', q(SELECT interlock.enable_versioning('split')), 'CREATE TABLE elsewhere (id int, state text, version bigint)',
    q(DO $$ BEGIN EXECUTE format('ALTER SERVER other OPTIONS (host %L, port %L, dbname %L)',
        current_setting('unix_socket_directories'), current_setting('port'), current_database()); END $$),
    'CREATE USER MAPPING FOR CURRENT_USER SERVER other',
    q(CREATE FOREIGN TABLE split_2 PARTITION OF split FOR VALUES FROM (10) TO (20) SERVER other OPTIONS (table_name 'elsewhere')));
sql('INSERT INTO split VALUES (11)');
like(message('UPDATE split SET state = $$b$$'), qr/function "version_trigger" cannot be called for "split_2", which is not a table/,
    'updates of one that was created later are refused');
is(sql(q(SELECT rel, severity, finding FROM interlock.advise() WHERE finding ~ 'foreign')),
    'split_2|broken|the partition is a foreign table, where no row can be checked: writes that fire its triggers are refused', 'and advise names it');

$node->stop;
done_testing();
