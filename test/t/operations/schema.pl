# The schema of the extension: made by it or found, without public, dropped with public, renamed by a superuser.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'");
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE stranger');

sub sql { return $node->safe_psql('postgres', $_[0]); }

sub refuses
{
    my ($statement, $reason, $name) = @_;
    my ($ret, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$statement");
    like($err, $reason, $name);
}

# SEC-11: what happens to public is nothing to the extension
sql('CREATE EXTENSION pg_interlock; CREATE SCHEMA app; CREATE TABLE app.doc (id int PRIMARY KEY, note text, version int)');
sql("SELECT interlock.enable_versioning('app.doc'); INSERT INTO app.doc VALUES (1)");
sql('DROP SCHEMA public CASCADE');
is(sql("UPDATE app.doc SET note = 'a' RETURNING version"), 2, 'SEC-11: DROP SCHEMA public CASCADE leaves the guards');
refuses('DROP SCHEMA interlock', qr/2BP01: /, 'SEC-11: the schema is not dropped unasked');
sql('DROP EXTENSION pg_interlock CASCADE; DROP SCHEMA interlock; DROP TABLE app.doc');
sql('CREATE EXTENSION pg_interlock');
is(sql('SELECT extnamespace::regnamespace FROM pg_extension WHERE extname ~ \'interlock\''), 'interlock', 'SEC-11: it needs no schema public');
sql('DROP EXTENSION pg_interlock');
is(sql("SELECT string_agg(nspname, ' ') FROM pg_namespace WHERE nspname LIKE 'interlock%'"), 'interlock', 'OPS-15: DROP EXTENSION leaves the schema of the API alone, and drops the other');

# SEC-11: interlock_internal is the extension's own, whoever else made one, and whatever is in it
sql('CREATE SCHEMA interlock_internal AUTHORIZATION stranger');
refuses('CREATE EXTENSION pg_interlock', qr/42P06: /, 'SEC-11: a schema interlock_internal of a stranger is refused');
sql('ALTER SCHEMA interlock_internal OWNER TO CURRENT_USER');
refuses('CREATE EXTENSION pg_interlock', qr/42P06: /, 'SEC-11: and an empty one of a superuser');
refuses('CREATE SCHEMA IF NOT EXISTS interlock_internal; CREATE EXTENSION pg_interlock', qr/42P06: /, 'SEC-11: which is not taken over');
sql('DROP SCHEMA interlock_internal; ALTER DEFAULT PRIVILEGES GRANT CREATE ON SCHEMAS TO stranger');
refuses('CREATE EXTENSION pg_interlock', qr/55000: .*schema "interlock_internal".*Role "stranger" may create objects in it.*REVOKE CREATE ON SCHEMAS/s,
    'SEC-11: one that default privileges open to a stranger');
sql('ALTER DEFAULT PRIVILEGES REVOKE CREATE ON SCHEMAS FROM stranger');
is(sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'interlock_internal'"), 0, 'SEC-11: and nothing of it is left');

# SEC-11: a schema that is there before may hold what a stranger has put there
sql('ALTER SCHEMA interlock OWNER TO stranger');
refuses('CREATE EXTENSION pg_interlock', qr/55000: .*Its owner "stranger" is not a superuser/s, 'SEC-11: a schema of a stranger is refused');
sql('ALTER SCHEMA interlock OWNER TO CURRENT_USER; GRANT CREATE ON SCHEMA interlock TO stranger');
refuses('CREATE EXTENSION pg_interlock', qr/55000: .*Role "stranger" may create objects in it/s, 'SEC-11: one that a stranger may write to');
sql('REVOKE CREATE ON SCHEMA interlock FROM stranger; GRANT CREATE ON SCHEMA interlock TO PUBLIC');
refuses('CREATE EXTENSION pg_interlock', qr/55000: .*Role "public" may create objects in it/s, 'SEC-11: or everybody');
sql('REVOKE CREATE ON SCHEMA interlock FROM PUBLIC');
for ([ 'FUNCTION interlock.now() RETURNS int LANGUAGE sql AS $$SELECT 1$$', 'function interlock.now()' ],
    [ 'TYPE interlock.text AS (a int)', 'type interlock.text' ], [ 'TABLE interlock.leases (a int)', 'table interlock.leases' ],
    [ 'OPERATOR interlock.= (LEFTARG = int, RIGHTARG = int, FUNCTION = pg_catalog.int4eq)', 'operator interlock.=(integer,integer)' ])
{
    my ($definition, $name) = @$_;
    my $drop = $name;
    $drop =~ s/=\(/= (/;
    sql("CREATE $definition");
    refuses('CREATE EXTENSION pg_interlock', qr/55000: .*It contains \Q$name\E/s, "SEC-11: one with a $name in it");
    sql("DROP $drop");
}
refuses('CREATE EXTENSION pg_interlock SCHEMA app', qr/must be installed in schema "interlock"/, 'SEC-11: no other schema is taken');
is(sql('CREATE EXTENSION pg_interlock; SELECT extnamespace::regnamespace FROM pg_extension WHERE extname ~ \'interlock\''),
    'interlock', 'SEC-11: an empty one of a superuser is taken, as schema files make it first');

# OPS-3: under another name of the schema nothing is silently off
sql(q(
    CREATE TABLE app.part (id int, r text, note text, PRIMARY KEY (id, r)) PARTITION BY LIST (r);
    CREATE TABLE app.part_a PARTITION OF app.part FOR VALUES IN ('a');
    SELECT interlock.enable_history('app.part'), interlock.enable_versioning('app.part'), interlock.enable_marker('app.part', '1 hour');
    INSERT INTO app.part VALUES (1, 'a', 'x');
    SELECT interlock.lock_row('app.part', '{"id": 1, "r": "a"}', 'anna');
    ALTER SCHEMA interlock RENAME TO moved;
    ALTER SCHEMA interlock_internal RENAME TO inside;
));
refuses("UPDATE app.part SET note = 'y'", qr/IL004: /, 'OPS-3: markers hold when the schema was renamed');
sql("INSERT INTO app.part VALUES (2, 'a', 'x'); UPDATE app.part SET note = 'y' WHERE id = 2");
is(sql(q(SELECT string_agg(operation, ' ' ORDER BY id) FROM app.part_history WHERE key->>'id' = '2')), 'insert update',
    'OPS-3: history of partitions is recorded when the schema was renamed');
is(sql('SELECT version FROM app.part WHERE id = 2'), 2, 'OPS-3: versions move');
refuses('SELECT * FROM moved.row_locks', qr/3F000: /, 'OPS-3: what needs the name says so');
# Statements that run as the extension's owner do not find what another role made under the old name
sql(q(
    CREATE SCHEMA interlock AUTHORIZATION stranger;
    CREATE TABLE interlock.writer_grant (writer text, role_name text, may_force bool);
    INSERT INTO interlock.writer_grant VALUES ('robot', 'public', true);
    GRANT USAGE ON SCHEMA interlock TO PUBLIC;
    CREATE SCHEMA interlock_internal AUTHORIZATION stranger;
    GRANT USAGE ON SCHEMA interlock_internal TO PUBLIC;
    CREATE TABLE interlock_internal.history_position (history oid PRIMARY KEY, position bigint);
));
refuses("SET ROLE stranger; SELECT moved.set_writer('robot')", qr/3F000: /, 'SEC-11: a schema under the old name is not read');
refuses("SELECT moved.grant_writer('robot', 'stranger')", qr/3F000: /, 'SEC-11: nor written');
# nor call what he made there
my @functions = split ' ', sql("SELECT string_agg(DISTINCT proname, ' ') FROM pg_proc WHERE pronamespace = 'inside'::regnamespace AND prorettype = 'trigger'::regtype");
cmp_ok(scalar @functions, '>', 9, 'trigger functions');
for my $schema ('interlock', 'interlock_internal')
{
    sql("CREATE FUNCTION $schema.$_() RETURNS trigger LANGUAGE plpgsql AS \$\$BEGIN RAISE 'planted'; END\$\$") for @functions;
}
sql(q(
    CREATE FUNCTION interlock.first_version(text) RETURNS bigint LANGUAGE sql RETURN 4711;
    CREATE TABLE app.new (id int PRIMARY KEY, status text);
    SELECT moved.enable_versioning('app.new'), moved.enable_marker('app.new', notify => 'on'),
        moved.define_transitions('app.new', 'status', '{"a": ["b"]}', '{a}'), moved.share_columns('app.new', '{id}', 'skip'), moved.require_lease('app.new', 'x:{id}', '{id}');
));
is(sql(q(SELECT string_agg(DISTINCT p.pronamespace::regnamespace::text, ' ') FROM pg_trigger t JOIN pg_proc p ON p.oid = tgfoid WHERE tgrelid = 'app.new'::regclass)),
    'inside', 'SEC-11: triggers call the functions of the extension, and not those of a schema under its old name');
is(sql(q(SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'app.new'::regclass AND pg_get_expr(adbin, adrelid) ~ 'first')), "moved.first_version('app.new_version_start'::text)",
    'SEC-11: and so does the default');
is(sql('SELECT column_name FROM moved.column_ownership'), 'id', 'SEC-11: lists find the triggers');
is(sql("ALTER TABLE app.new DISABLE TRIGGER USER; SELECT count(*) FROM moved.advise() WHERE rel = 'app.new'::regclass"), 7, 'SEC-12: advise does, too');
sql('DROP TABLE app.new');
# Each of the two names counts
sql('DROP SCHEMA interlock, interlock_internal CASCADE');
sql('ALTER SCHEMA moved RENAME TO interlock');
refuses('SELECT * FROM interlock.row_locks', qr/3F000: .*ALTER SCHEMA inside RENAME TO interlock_internal/s, 'OPS-3: what needs the name of the other schema says so');
refuses("UPDATE app.part SET note = 'y' WHERE id = 1", qr/IL004: /, 'OPS-3: and markers hold');
sql('ALTER SCHEMA inside RENAME TO interlock_internal');
is(sql('SELECT holder FROM interlock.row_locks'), 'anna', 'OPS-3: and back');

$node->stop;
done_testing();
