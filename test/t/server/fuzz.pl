# Random statements of roles that mean harm, with nothing but LOGIN, TEMP and a schema of their own: triggers that call
# our functions with any arguments, calls of every function with any arguments, writes and DDL. The server has to stay up, no error may
# be an internal one, and others have to see their views (SEC-1, SEC-5, OPS-11 to OPS-13).
#
#   FUZZ_SEED=n       the statements of that run; printed at the start
#   FUZZ_CASES=n      how many statements
#   FUZZ_SECONDS=n    instead: for so long
#   FUZZ_DDL=1        two more sessions that do little but DDL on the same tables
#   FUZZ_STANDBY=1    with a physical standby, which has to follow and compares every page; script/test --debug sets it
#   FUZZ_SESSIONS=n   at a time

use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $seed = $ENV{FUZZ_SEED} // time % 1_000_000_000;
$seed = int $seed;
my $cases = $ENV{FUZZ_CASES} // 3000;
my $seconds = $ENV{FUZZ_SECONDS};
my $sessions = $ENV{FUZZ_SESSIONS} // 3;
my $per_session = 250;
note "FUZZ_SEED=$seed";

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => $ENV{FUZZ_STANDBY} ? 1 : 0);
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
log_error_verbosity = verbose
log_min_messages = warning
log_statement = none
max_connections = 50
max_prepared_transactions = 5
deadlock_timeout = 100ms
interlock.sweeper_rescan = 1
));
$node->append_conf('postgresql.conf', "wal_consistency_checking = 'all'") if $ENV{FUZZ_STANDBY};
$node->start;
my $standby;
if ($ENV{FUZZ_STANDBY})
{
    $node->backup('base');
    $standby = PostgreSQL::Test::Cluster->new('standby');
    $standby->init_from_backup($node, 'base', has_streaming => 1);
    $standby->start;
}
$node->safe_psql('postgres', q(
    CREATE EXTENSION pg_interlock;
    CREATE ROLE fuzz_stranger LOGIN;
    CREATE ROLE fuzz_owner LOGIN;
    CREATE ROLE fuzz_other LOGIN;
    CREATE ROLE fuzz_granted LOGIN IN ROLE pg_monitor; -- and all that grant_access has
    SELECT interlock.grant_access(kind, 'fuzz_granted') FROM unnest('{monitor,operator,administrator}'::text[]) kind;
    SELECT interlock.define_idempotency_scope('api', ttl => '1 s', stale_after => '100 ms'), interlock.grant_idempotency_scope('*', 'fuzz_owner');
    CREATE SCHEMA lair AUTHORIZATION fuzz_owner;
    GRANT USAGE ON SCHEMA lair TO PUBLIC;
    ALTER DEFAULT PRIVILEGES FOR ROLE fuzz_owner GRANT ALL ON TABLES TO PUBLIC;
    CREATE TABLE kept (id int PRIMARY KEY, a text);
    SELECT interlock.enable_versioning('kept'), interlock.enable_marker('kept'), interlock.enable_history('kept', 5);
    SELECT interlock.own_columns('kept', 'w', '{a}');
    INSERT INTO kept SELECT generate_series(1, 3);
    SELECT interlock.lock_row('kept', 1, 'anna', '1 d');
    GRANT SELECT, UPDATE ON kept TO fuzz_other, fuzz_stranger;));

# Every function with the types of its arguments
my @functions = map { my ($schema, $name, @types) = split /\|/; { schema => $schema, name => $name, types => \@types } } split /\n/,
  $node->safe_psql('postgres', q(
    SELECT concat_ws('|', pronamespace::regnamespace, proname, (SELECT string_agg(type::regtype::text, '|' ORDER BY n) FROM unnest(proargtypes) WITH ORDINALITY a (type, n)))
      FROM pg_proc WHERE pronamespace::regnamespace::text IN ('interlock', 'interlock_internal') AND proname NOT IN ('note_lease_store') ORDER BY oid));
my @triggers = grep { /trigger$/ } map { $_->{name} } @functions;
my @views = split /\n/, $node->safe_psql('postgres',
    q(SELECT relname FROM pg_class WHERE relnamespace = 'interlock'::regnamespace AND relkind = 'v' ORDER BY 1));

sub one { $_[rand @_] }
sub some { map { one(@_[1 .. $#_]) } 1 .. $_[0] }
sub chance { rand(1) < $_[0] }
sub quoted { my ($text) = @_; $text =~ s/'/''/g; "'$text'" }

# --- Values --------------------------------------------------------------------------------------

my @words = ('', 'id', 'status', 'v', 'n', 'ts', 'key', 'part', 'ctid', 'xmin', 'tableoid', 'a', 'b', 'w', 'lock_status', 'lock_by', 'lock_time', 'lock_until',
    'lock_reason', 'version', '0', '1', '-1', '2', '10', '{', '}', '{}', '[]', '"', '\\', '%s', '%n', '$1', 'ä', 'x' x 70, 'ä' x 40, 'k' x 3000, 'a/b', '/',
    'a//b', ':', '*', '{id}', '{status}', '{none}', '{{', 'integer', 'bigint', 'text', 'enforce', 'advise', '300000000 microseconds',
    '9223372036854775807', '99999999999999999999', '-9223372036854775808', '0 microseconds since 2000-01-01 UTC', 'own:reject', 'own:skip', 'share:merge', 'share:retry',
    'group', '{"a": ["b"], "b": ["a"]}', '{"a": ["b"]', '["a"]', '["a", 1]', '"a"', 'null', '{"a": [1]}', '{"a": ["\\u0000"]}', '[[[[[', '1e1000000',
    'stock', 'delta', '0.5', 'NaN', 'exclusive', 'shared', 'update', 'merge', 'report', 'reject', 'skip', 'api', 'job', 'session', 'transaction', 'public', 'infinity',
    'now()', 'jsonb_concat', 'jsonb_concat(jsonb,jsonb)', 'jsonb_typeof(jsonb)', 'sum(integer)', 'interlock_internal.version_trigger()', 'f(', '"f');
my @json = ('{}', '[]', 'null', '1', '"a"', 'true', '{"id": 1}', '{"id": null}', '{"id": "x"}', '{"id": 1, "part": 1}', '{"status": "b"}', '{"v": 5}', '{"v": 1e400}',
    '{"n": 9223372036854775807}', '{"": 1}', '{"ctid": 1}', '{"ts": "infinity"}', '{"a": ["b"]}', '{"a": 1}', '{"version": 2}', '[{"key": 1, "version": 1, "changes": {}}]',
    '[{"key": 1}]', '[1]', '{"lock_status": 1}', '{"lock_until": "infinity"}', '{"status": {"x": [1]}}', '[[1]]',
    '{"versioning": {"version_column": "v", "blind_updates": "warn"}}', '{"versioning": null, "marker": {}, "history": null}', '{"marker": {"ttl": 1e400}}', '{"marker": {"sweep_index": false}}',
    '{"transitions": {"status": {"transitions": {"a": ["b", 1]}, "initial": ["a"]}, "v": null}}', '{"transitions": {"part": {"transitions": {"1": [2]}}}, "require_lease": {"t/{id}": {}}}',
    '{"ownership": {"columns": {"status": {"writer": "w"}, "v": null, "n": {"strategy": "merge"}}, "groups": [["n", "v"]]}}', '{"ownership": null, "transitions": null, "require_lease": null}',
    '{"escrow": {"stock": {"minimum": "-5", "maximum": 1e3, "plain_updates": "delta"}, "n": null}}', '{"escrow": {"stock": {"maximum": "NaN"}, "": {}}}', '{"escrow": null}',
    '{"guard_children": {"t1": {}, "lair.t2": {"foreign_keys": [["part"], ["id"]]}}}', '{"guard_children": {"-": null, "pg_class": {"foreign_keys": [[], [1]]}}}', '{"guard_children": null}',
    '{"history": {"keep_versions": 1e10, "keep_for": "infinity"}}', '{"ownership": {"groups": [[], [[]], null]}}', '{"ownership": {"columns": {"": {"writer": "\\u0001"}}}}');
my @tables = map { ("t$_", "lair.t$_") } 1 .. 4;
my @parts = map { ("t${_}_p1", "t${_}_p2", "lair.t${_}_p1") } 1 .. 4;
my @relations = (@tables, @tables, @tables, @parts, 'kept', 'kept_history', 't1_history', 'lair.t1_history', 'lair.t2_history', 't1_pkey', 'lair.t1_pkey', 'v1', 'pg_class', 'pg_proc',
    'pg_stat_activity', 'information_schema.tables', 'interlock_internal.lease_store', 'interlock.idempotency', 'interlock.write_log', 'interlock.row_locks',
    'interlock.writer_grant', 'interlock_internal.history_position', 'kept_version_start', 'interlock.idempotency_token', 'pg_toast.pg_toast_1255');

my %value = (
    'regclass' => sub { chance(0.85) ? quoted(one(@relations)) : one('0', '1', '999999', '4294967295', '16384', '20000') . '::oid' },
    'text' => sub { quoted(one(@words)) },
    'name' => sub { quoted(one(@words)) },
    'boolean' => sub { one('true', 'false') },
    'integer' => sub { one('0', '1', '-1', '2', '10', '2147483647', '-2147483648') },
    'bigint' => sub { one('0', '1', '-1', '2', '9223372036854775807', '-9223372036854775808') },
    'numeric' => sub { one('0', '1', '-1', '1', '-1', '0.5', '0.01', '-1e18', '1e18', '1e400', "'NaN'", "'-Infinity'", '-9223372036854775808', '0.0000000000000000001') },
    'interval' => sub { quoted(one('0', '1 ms', '50 ms', '1 s', '-1 s', '1 year', '178000000 years', '-178000000 years', '1 mon -30 days')) },
    'timestamp with time zone' => sub { quoted(one('now', 'infinity', '-infinity', '2000-01-01', '4713-01-01 BC', '294276-12-31 23:59:59.999999+00')) },
    'jsonb' => sub { quoted(one(@json)) },
    'bytea' => sub { quoted(one('', '\\x00', '\\xdeadbeef')) },
    'text[]' => sub { quoted(one('{}', '{a}', '{a,b,a}', '{NULL}', '{{a},{b}}', '{""}', '{a,a/b}', '[5:6]={x,y}')) },
    'name[]' => sub { quoted(one('{}', '{status}', '{status,v}', '{NULL}', '{{status},{v}}', '{""}', '{ctid}', '{id}', '{status,status}')) },
    'bigint[]' => sub { quoted(one('{}', '{1,2}', '{NULL}')) },
    '"any"' => sub { one('1', '2', '-1', '3::bigint', "'1'::text", "'a'::text", "''::name", '1.5', 'now()', 'NULL::int', 'NULL::jsonb', 'ARRAY[1,2]', "'{1,NULL}'::int[]", "'{{1},{2}}'::int[]",
        'ROW(1,2)', 'point(1,2)', "'x'::\"char\"", 'int4range(1,5)', '1::smallint', '1e300', "'NaN'::float8", "'\\x01'::bytea", 'gen_random_uuid()', "'" . one(@json) . "'::jsonb",
        "'" . one(@json) . "'::json", "'id'::name", "'{a,b}'::text[]", '0::oid', "'pg_class'::regclass", 'interval \'1 s\'') },
);

sub argument
{
    my ($type) = @_;
    return 'NULL' if chance(0.06);
    my $make = $value{$type} // $value{text};
    return $make->();
}

# --- Statements ----------------------------------------------------------------------------------

sub call
{
    my $function = shift // one(@functions);
    my @types = @{ $function->{types} };
    my @arguments = map { argument($_) } @types;
    # Several share a name and a table: let them meet.
    $arguments[0] = quoted(one(@tables)) if @types && $types[0] eq 'regclass' && chance(0.6);
    pop @arguments while @arguments && chance(0.25);
    my $call = "$function->{schema}.$function->{name}(" . join(', ', @arguments) . ')';
    return "SELECT * FROM $call" if chance(0.8);
    return one("SELECT $call FROM generate_series(1, 3)", "SELECT $call FROM " . one(@tables), "EXPLAIN (ANALYZE, VERBOSE) SELECT $call",
        "DO \$do\$BEGIN PERFORM $call; EXCEPTION WHEN OTHERS THEN PERFORM 1; END\$do\$", "PREPARE p AS SELECT $call; EXECUTE p; EXECUTE p; DEALLOCATE p",
        "DECLARE c CURSOR WITH HOLD FOR SELECT $call; FETCH c; CLOSE c");
}

# Counters, as they are meant and nearly: more often than by chance on the same rows
sub escrow
{
    my $table = one(@tables);
    my $name = quoted($table);
    my $key = one(1 .. 3, 1, "'1'", '(SELECT min(id) FROM ' . one($table, @tables) . ')', "'" . one(@json) . "'::jsonb");
    my $delta = one('-1', '-1', '1', '-3', argument('numeric'));
    my $wait = one('', '', ", '50 ms'");
    return one(
        "SELECT interlock.enable_escrow($name, 'stock')", "SELECT interlock.enable_escrow($name, 'stock', " . one('0', '-100') . ', ' . one('100', 'NULL') . ', ' . one("'delta'", "'reject'") . ', ' . one('true', 'false') . ')',
        "SELECT interlock.disable_escrow($name, 'stock')", "SELECT interlock.set_escrow($name, $key, 'stock', " . one('5', argument('numeric')) . ')', "SELECT interlock.fold_escrow($name)",
        "SELECT interlock.fold_escrow($name, $key)", "SELECT interlock.escrow_value($name, $key, 'stock')", "UPDATE $table SET stock = stock - 1", "UPDATE $table SET stock = 5 WHERE id = 1", "UPDATE $table SET id = id + 1",
        map { ("SELECT interlock.${_}adjust($name, $key, 'stock', $delta$wait)", "SELECT interlock.${_}adjust($name, id, 'stock', $delta$wait) FROM $table", "SELECT interlock.${_}adjust($name, $key, 'stock', -1)") } '', 'try_', 'try_');
}

# One key, claimed, done again and completed
sub idempotent
{
    my $of = one("'api', 'k'", "'api', 'k'", "'job', " . argument('text'));
    my $token = one('1', '(SELECT max(attempt) FROM interlock.idempotency_lookup(' . $of . '))', '(SELECT token FROM interlock.idempotency_claim(' . $of . '))', argument('bigint'));
    return one(
        "SELECT * FROM interlock.idempotency_claim($of, " . argument('jsonb') . ", wait => " . argument('interval') . ')',
        "SELECT * FROM interlock.idempotency_claim($of, request_hash => " . argument('bytea') . ', stale_after => ' . argument('interval') . ", state => " . argument('jsonb') . ')',
        "SELECT interlock.idempotency_complete($of, $token, " . argument('jsonb') . ')', "SELECT interlock.idempotency_release($of, $token)",
        "SELECT interlock.idempotency_complete($of, $token, body => " . argument('bytea') . ')',
        "SELECT * FROM interlock.run_once($of, " . quoted(one('jsonb_strip_nulls(jsonb)', 'jsonb_strip_nulls(jsonb)', 'now()', 'jsonb_typeof(jsonb)')) . ', ' . argument('jsonb') . ", wait => '20 ms')",
        "SELECT * FROM interlock.idempotency_lookup($of)", "SELECT interlock.idempotency_forget($of, 'r')");
}

sub call_of { my ($pattern) = @_; call(one(grep { $_->{name} =~ $pattern } @functions)) }

# As guard_children makes them, or nearly
sub create_child_trigger
{
    my ($table) = @_;
    my $column = one('part', 'part', 'id', 'v', 'status');
    my ($event, @rows) = @{ one([ 'INSERT', 'new' ], [ 'DELETE', 'old' ], [ 'UPDATE', 'old', 'new' ]) };
    my @arguments = (quoted(one(@tables)) . '::regclass', "$rows[-1].tableoid", ($event eq 'UPDATE' ? ('old.ctid', 'new.ctid') : ()), map { "$_.$column" } @rows);
    $arguments[rand @arguments] = one("$rows[0].id", "$rows[0].ctid", "$rows[0].tableoid", 'NULL::int', "'kept'::regclass", "$rows[0].*") if chance(0.2);
    my $call = 'interlock_internal.changes_parent(' . join(', ', @arguments) . ')';
    return 'CREATE CONSTRAINT TRIGGER "' . one('x', 'zzz_interlock_children_part_insert', 'zzz_child') . "\" AFTER $event ON $table " . one('', 'DEFERRABLE INITIALLY DEFERRED')
      . ' FOR EACH ROW WHEN (' . one($call, $call, "NOT $call", "$call OR $call") . ') EXECUTE FUNCTION interlock_internal.' . one('children_trigger', 'children_trigger', 'version_trigger') . '()';
}

sub create_trigger
{
    my ($table) = @_;
    return create_child_trigger($table) if chance(0.1);
    my $function = one(@triggers);
    my $name = one('x', 'zzz_interlock_version', 'zzz_interlock_marker', '000_interlock_history', 'zzz_interlock_columns', 'zzz_interlock_transition_status', "zz$function");
    my $timing = one('BEFORE', 'AFTER');
    my @plausible = (
        [ 'version_trigger', one('v', 'n', 'ts', 'id'), 'status' ],
        [ 'transition_trigger', 'status', '{"a": ["b"], "b": ["a"]}', one('', '["a"]'), one('allow', 'reject') ],
        [ 'initial_state_trigger', 'status' ],
        [ 'marker_trigger', '300000000 microseconds', one('enforce', 'advise'), 'lock_status', 'lock_by', 'lock_time', 'lock_until', 'lock_reason', @{ one([], [], [ 'no sweep index' ], [ 'allow' ], [ 'no sweep index', 'operators' ], [ 'allow', 'operators' ]) } ],
        [ 'marker_notify_trigger' ],
        [ 'escrow_trigger', one('stock', 'stock', 'n', 'v'), one('0', '0', '-9223372036854775808', 'NaN', '1e9'), one('', '', '10', 'x'), one('reject', 'delta', 'delta'), one('true', 'false'), one('off', 'on', 'full', 'x'), one('id', 'id', 'part', 'status') ],
        [ 'escrow_trigger', 'stock', '0', '', 'delta', 'false', 'on', 'id', 'part' ],
        [ 'escrow_truncate_trigger' ],
        [ 'lease_trigger', one('k:{id}', '{status}', 'a') ],
        [ 'ownership_trigger', 'status', 'own:skip', 'w', 'v', 'share:merge', '' ],
        [ 'history_trigger', one('', '2'), one('', '1 microseconds'), '0', one('notify off', 'notify on', 'notify full'), one('ignore markers', 'record markers'), one('1', '2', '16', '0') . ' entries per whole row',
            @{ one([ '0 ignored columns' ], [ '1 ignored columns', one('v', 'status', 'id', 'gone') ], [ '2 ignored columns', 'v' ]) },
            @{ one([ '0 ignored writers' ], [ '1 ignored writers', 'w' ], [ '9999 ignored writers' ]) }, 'id', 'integer' ]);
    my @arguments;
    if (chance(0.5))
    {
        my ($real, @given) = @{ one(@plausible) };
        ($function, @arguments) = ($real, @given);
        $timing = $real =~ /history|initial|lease_|notify/ ? 'AFTER' : 'BEFORE' if chance(0.8);
        $arguments[rand @arguments] = one(@words) if @arguments && chance(0.3);
    }
    else
    {
        @arguments = some(int rand 9, @words);
    }
    @arguments = ('x') x one(32768, 40000, 65537) if chance(0.005); # more than the catalog can count
    my $events = chance($function =~ /truncate/ ? 0.8 : 0.1) ? 'TRUNCATE' : join(' OR ', grep { chance(0.7) } qw(INSERT UPDATE DELETE)) || 'UPDATE';
    my $level = chance(0.9) && $events ne 'TRUNCATE' ? 'ROW' : 'STATEMENT';
    my $arguments = join(', ', map { quoted($_) } @arguments);
    my $call = "FOR EACH $level EXECUTE FUNCTION interlock_internal.$function($arguments)";
    return "CREATE CONSTRAINT TRIGGER \"$name\" AFTER $events ON $table " . one('', 'FROM ' . one(@relations)) . ' ' . one('', 'DEFERRABLE', 'DEFERRABLE INITIALLY DEFERRED') . " $call"
      if chance(0.3);
    return 'CREATE ' . one('', 'OR REPLACE') . " TRIGGER \"$name\" $timing $events ON $table $call";
}

sub create_table
{
    my ($table, $temporary) = @_;
    my $markers = ', lock_status ' . one('smallint', 'int', 'bigint', 'text') . ' DEFAULT 0, lock_by text, lock_time ' . one('timestamptz', 'timestamp')
      . ', lock_until timestamptz, lock_reason text';
    my $key = one('id int PRIMARY KEY', 'id int PRIMARY KEY', 'id int', 'id bigint UNIQUE', 'id text NOT NULL UNIQUE', 'id uuid PRIMARY KEY DEFAULT gen_random_uuid()', 'id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY');
    my $columns = "$key, status " . one('text', 'text', 'int', 'json', "varchar(1)", 'name') . ', v ' . one('int', 'bigint', 'int NOT NULL DEFAULT 1', 'text', 'smallint')
      . ', n bigint DEFAULT 1, ts ' . one('timestamptz', 'timestamp(0)', 'date') . ', part int DEFAULT 1, stock ' . one('int', 'int', 'smallint', 'bigint', 'numeric(6,2)', 'numeric(18)') . ' NOT NULL DEFAULT 9' . (chance(0.5) ? $markers : '')
      . (chance(0.1) ? ', g int GENERATED ALWAYS AS (part + 1) STORED' : '');
    my $create = 'CREATE ' . ($temporary ? 'TEMP ' : one('', '', 'UNLOGGED ')) . 'TABLE';
    return ("$create $table (id int, status text, v int, n bigint, ts timestamptz, part int, stock int NOT NULL DEFAULT 9" . (chance(0.6) ? $markers : '') . (chance(0.6) ? ', PRIMARY KEY (id, part)' : '')
          . ') PARTITION BY LIST (part)', "$create ${table}_p1 PARTITION OF $table FOR VALUES IN (1)", "$create ${table}_p2 PARTITION OF $table DEFAULT") if chance(0.2);
    return "$create $table ($columns)";
}

# By which a statement may know the version of what it writes
sub comparison
{
    return one('v = 1', 'v = 1 OR id = 2', 'interlock.any_version(v)', 'NOT interlock.any_version(t.v)', 'v IN (1, 2)', '(id, v) = (1, 1)', 'v = id', 'v = (SELECT 1)', 'v = (SELECT max(v) FROM kept)',
        'EXISTS (SELECT FROM kept k WHERE k.id = t.id AND t.v = 1)', 'v IS NOT DISTINCT FROM 1', "v = ANY ('{1,2}')", 'v + 0 = 1', 'CASE WHEN v = 1 THEN true ELSE v = 2 END', 'v IS NULL', 'v::text = \'1\'', 'true');
}

sub change_rows
{
    my ($table) = @_;
    my $set = join(', ', map { one("status = 'b'", "status = 'a'", 'status = NULL', 'v = v + 1', 'v = 5', 'n = n + 1', "ts = 'infinity'", 'ts = now()', 'part = 3 - part', 'id = id + 10',
        'lock_status = 1', "lock_status = 0", "lock_by = 'm'", "lock_until = 'infinity'", 'status = status') } 1 .. 1 + rand 2);
    return one(
        "INSERT INTO $table (id, status, part) VALUES (" . one(1 .. 4) . ", 'a', " . one(1, 2) . ')',
        "INSERT INTO $table (id, status) VALUES (" . one(1 .. 4) . ", 'b') ON CONFLICT DO NOTHING",
        "INSERT INTO $table DEFAULT VALUES",
        "UPDATE $table SET $set", "UPDATE $table SET $set", "UPDATE $table SET $set WHERE id = 1",
        "UPDATE $table t SET $set WHERE " . comparison(), "UPDATE $table t SET $set WHERE id = 1 AND " . comparison(), "UPDATE $table t SET $set FROM kept k WHERE t.id = k.id AND " . comparison(),
        "DECLARE c CURSOR FOR SELECT * FROM $table FOR UPDATE; FETCH c; UPDATE $table SET $set WHERE CURRENT OF c; CLOSE c",
        "WITH w AS (UPDATE $table t SET $set WHERE " . comparison() . " RETURNING *) SELECT * FROM w",
        "INSERT INTO $table AS t (id, status) VALUES (1, 'a') ON CONFLICT (id) DO UPDATE SET $set WHERE " . one('t.v = excluded.v', comparison()),
        "DELETE FROM $table WHERE id = " . one(1 .. 4), "DELETE FROM $table", "TRUNCATE $table",
        "MERGE INTO $table USING (VALUES (1)) s (x) ON id = x WHEN MATCHED THEN UPDATE SET $set WHEN NOT MATCHED THEN INSERT (id) VALUES (x)");
}

sub ddl
{
    my ($table) = @_;
    my ($schema, $name) = $table =~ /^(lair)\.(.*)/ ? ("$1.", $2) : ('', $table);
    return one(
        "DROP TABLE $table CASCADE", "ALTER TABLE $table RENAME TO t" . one(1 .. 4),
        "ALTER TABLE $table RENAME COLUMN " . one('status', 'v', 'n', 'id', 'lock_by') . ' TO ' . one('w', 'v', 'status', 'id', 'lock_by'),
        "ALTER TABLE $table DROP COLUMN " . one('v', 'status', 'lock_until', 'id', 'n') . ' CASCADE', "ALTER TABLE $table ADD COLUMN " . one('v int', 'n bigint', 'status text', 'lock_by text', 'w int'),
        "ALTER TABLE $table ALTER COLUMN " . one('v TYPE bigint USING NULL', 'stock TYPE numeric(8,1)', 'stock TYPE int', 'stock DROP NOT NULL', 'id TYPE bigint', 'status TYPE int USING 1', 'lock_status TYPE text', 'v DROP NOT NULL', 'n SET DEFAULT 5', 'v DROP DEFAULT'),
        "CREATE INDEX ON $table (" . one('status', 'v', 'lock_until', '(v + 1)', 'lock_until) WHERE (lock_status = 1') . ')',
        "CREATE UNIQUE INDEX ON $table (" . one('id', 'id, part', 'status') . ')', "DROP INDEX ${schema}${name}_v_idx", "REINDEX TABLE $table",
        "ALTER TABLE $table ADD FOREIGN KEY (" . one('part', 'id', 'v') . ') REFERENCES ' . one(@tables) . one('', ' (id)') . one('', ' ON DELETE CASCADE', ' ON UPDATE CASCADE DEFERRABLE'),
        "ALTER TABLE $table DROP CONSTRAINT ${name}_pkey CASCADE", "ALTER TABLE $table ADD PRIMARY KEY (id)",
        "ALTER TABLE $table " . one('ENABLE', 'DISABLE', 'ENABLE ALWAYS', 'ENABLE REPLICA') . ' TRIGGER ' . one('ALL', 'USER', 'x', 'zzz_interlock_version', 'zzz_interlock_marker'),
        "ALTER TABLE $table DETACH PARTITION ${table}_p1", "ALTER TABLE $table ATTACH PARTITION ${table}_p1 FOR VALUES IN (1)", "DROP TABLE ${table}_p2",
        'DROP TRIGGER ' . one('x', 'zzz_interlock_version', '"000_interlock_history"', 'zzz_interlock_marker') . " ON $table",
        "ALTER TRIGGER x ON $table RENAME TO " . one('y', 'zzz_interlock_version', 'zzzz'),
        "DROP TABLE ${table}_history CASCADE", "ALTER TABLE ${table}_history " . one('DROP COLUMN key', 'ADD COLUMN more int', 'ALTER COLUMN version TYPE text', 'RENAME TO v1', 'RENAME COLUMN row_data TO old'),
        "ALTER TABLE $table ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON $table USING (id > 1)", "ALTER TABLE $table DISABLE ROW LEVEL SECURITY",
        "CREATE OR REPLACE VIEW v1 AS SELECT 1 AS id", "VACUUM $table", "ANALYZE $table", "LOCK TABLE $table", "CLUSTER $table");
}

sub configure
{
    my @two = map { quoted(one(@tables)) } 1 .. 2;
    return one("SELECT interlock.guard_children($two[0], $two[1])", "SELECT interlock.unguard_children($two[0], $two[1])", "SELECT interlock.enable_versioning($two[0], " . one("'v'", "'n'") . ", '{}', " . one("'reject'", "'warn'") . ')') if chance(0.15);
    return call_of(qr/^(enable|disable|define_transitions|drop_transitions|require_lease|unrequire|guard_|unguard_|own_|share_|release_columns|hand_over|group_|ungroup|configur)/);
}

sub control
{
    return one('BEGIN', 'COMMIT', 'COMMIT', 'ROLLBACK', 'SAVEPOINT s', 'ROLLBACK TO s', 'RELEASE s', 'BEGIN ISOLATION LEVEL ' . one('REPEATABLE READ', 'SERIALIZABLE', 'READ COMMITTED READ ONLY'),
        'SET CONSTRAINTS ALL ' . one('IMMEDIATE', 'DEFERRED'), "SET interlock.direct_execution = off", "SET search_path = " . one('public', 'lair, public', 'pg_temp, interlock', "''"),
        'RESET ALL', "SET datestyle = 'SQL, DMY'", 'DISCARD ' . one('PLANS', 'TEMP', 'ALL'), "PREPARE TRANSACTION 'p" . one(1, 2) . "'", "ROLLBACK PREPARED 'p" . one(1, 2) . "'", 'LISTEN interlock_row_lock');
}

sub statement
{
    my ($ddl) = @_;
    my $table = one(@tables);
    my $which = rand 100;
    return ddl($table) if $which < ($ddl ? 45 : 8);
    return create_trigger($table) if $which < ($ddl ? 60 : 25);
    return create_table($table, $table !~ /lair/) if $which < ($ddl ? 70 : 30);
    return configure() if $which < ($ddl ? 80 : 38);
    return change_rows(one(@tables, one(@parts))) if $which < 55;
    return escrow() if $which < 64;
    return idempotent() if $which < 67;
    return 'SELECT count(*) FROM interlock.' . one(@views) if $which < 71;
    return control() if $which < 77;
    return call();
}

# --- Sessions ------------------------------------------------------------------------------------

sub script
{
    my ($number, $role, $ddl) = @_;
    srand($seed + $number);
    my @lines = map { "$_;" } map { create_table($_, 1) } grep { !/lair/ } @tables;
    # A superuser may take the marker away that others have to see.
    push @lines, map { "$_;" } grep { $role ne 'postgres' || !/kept/ } statement($ddl) while @lines < $per_session;
    return join("\n", '\set ON_ERROR_STOP 0', '\set ON_ERROR_ROLLBACK on', '\set QUIET 1', @lines, '');
}

sub begin_session
{
    my ($number, $role, $ddl) = @_;
    my $script = script($number, $role, $ddl);
    my $file = "$PostgreSQL::Test::Utils::tmp_check/fuzz_$number.sql";
    open my $out, '>', $file or die $!;
    print $out $script;
    close $out;
    # What they lock together they give up soon.
    local $ENV{PGOPTIONS} = '-c statement_timeout=400ms -c lock_timeout=150ms';
    my %session = (number => $number, file => $file, output => '');
    $session{run} = IPC::Run::start([ 'psql', '-XqAt', '-d', $node->connstr('postgres') . " user=$role", '-f', $file ],
        '>', '/dev/null', '2>', '/dev/null', IPC::Run::timeout(600));
    return \%session;
}

# What others see while the sessions run
my @public_views = split /\n/, $node->safe_psql('postgres', q(SELECT relname FROM pg_class WHERE relnamespace = 'interlock'::regnamespace AND relkind = 'v'
    AND has_table_privilege('fuzz_other', oid, 'SELECT') ORDER BY 1));
my $looks = join(";\n", 'SET statement_timeout = \'60s\'', (map { "SELECT count(*) FROM interlock.$_" } @public_views), 'SELECT count(*) FROM interlock.advise()',
    'SELECT id, holder FROM interlock.row_locks r JOIN kept k ON r.rel = \'kept\'::regclass AND (r.key->>\'id\')::int = k.id');
sub look
{
    my ($role) = @_;
    my ($status, $out, $error) = $node->psql('postgres', $looks . ($role eq 'postgres' ? ";\nSELECT count(*) FROM interlock.sweep();\nSELECT count(*) FROM interlock.trim_history()" : ''),
        extra_params => [ '-U', $role ], on_error_stop => 1);
    $error =~ s{^.*(?:WARNING|NOTICE|DETAIL|CONTEXT|HINT|SQL statement|LOCATION).*(?:\n|\z)}{}mg;
    return $status == 0 && $out =~ /^1\|anna$/m ? '' : "$role: status $status: $error\n$out";
}

sub end_prepared
{
    $node->safe_psql('postgres', one('COMMIT', 'ROLLBACK') . " PREPARED '$_'") for split /\n/, $node->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');
}

# What no session has any more is not held or undecided in shared memory.
sub left_over
{
    my $left = q(SELECT (SELECT count(*) FROM interlock.escrow WHERE undecided <> 0) + (SELECT sum(used) FROM interlock.usage WHERE what IN ('key names', 'lease waiters')));
    return $node->poll_query_until('postgres', $left, 0) ? () : 'left in shared memory: ' . $node->safe_psql('postgres', 'SELECT * FROM interlock.usage; SELECT * FROM interlock.escrow WHERE undecided <> 0');
}

my $log_from = 0;
sub findings
{
    my $log = slurp_file($node->logfile, $log_from);
    $log_from += length $log;
    my @lines = split /\n/, $log;
    # What the server itself says to concurrent DDL: on one row of a catalog, where it looks at a table that it has not locked, and
    # where ALTER TABLE looks for a constraint with the snapshot of a transaction that is older than it
    my $is_servers = sub {
        my ($n) = @_;
        my ($location) = grep { /LOCATION:  / } @lines[$n + 1 .. ($n + 10 < $#lines ? $n + 10 : $#lines)];
        $location //= '';
        return $lines[$n] =~ /tuple concurrently (?:updated|deleted)/ || $lines[$n] =~ /cache lookup failed for relation/ && $location =~ /RangeVarCallback/
            || $lines[$n] =~ /could not find tuple for constraint/ && $location =~ /pg_get_constraintdef_worker/;
    };
    return map { $lines[$_] } grep {
        $lines[$_] =~ /PANIC|TRAP|terminated by signal|ERROR:  XX|FATAL:  XX|cache lookup failed|unrecognized node|could not open relation with OID/ && !$is_servers->($_)
    } 0 .. $#lines;
}

my $began = time;
my ($number, $done, @trouble) = (0, 0);
while (!@trouble && (defined $seconds ? time - $began < $seconds : $done < $cases))
{
    my @running = map { begin_session($number++, one('fuzz_stranger', 'fuzz_owner', 'fuzz_owner', 'fuzz_granted'), 0) } 1 .. $sessions;
    push @running, map { begin_session($number++, 'fuzz_owner', 1) } 1 .. 2 if $ENV{FUZZ_DDL};
    push @running, begin_session($number++, 'postgres', 0) if $ENV{FUZZ_DDL} || chance(0.3);
    push @trouble, grep { $_ } look('postgres'), look('fuzz_other');
    $_->{run}->finish for @running;
    end_prepared();
    push @trouble, left_over();
    $done += $per_session * @running;
    push @trouble, findings();
    unlink map { $_->{file} } @running unless @trouble;
    note sprintf '%d statements, %d s', $done, time - $began if defined $seconds && $number % 30 < @running;
}
is(join("\n", @trouble), '', "nothing goes wrong inside in $done statements, and others see theirs")
  or diag("FUZZ_SEED=$seed; the last sessions are in $PostgreSQL::Test::Utils::tmp_check; the log is " . $node->logfile);
is($node->safe_psql('postgres', 'SELECT 1'), 1, 'the server is up');
if ($standby)
{
    $node->wait_for_catchup($standby);
    is($standby->safe_psql('postgres', 'SELECT 1'), 1, 'the standby follows');
    ok(slurp_file($standby->logfile) !~ /PANIC|TRAP|terminated by signal|inconsistent page/, 'and found every page as it was');
}
done_testing();
