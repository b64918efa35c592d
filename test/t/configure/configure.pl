# configure and the view guards beyond one session: dumps, tables that are locked or go while they are read, a server that does
# not preload the library, and many tables.

use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
interlock.sweeper = off
max_locks_per_transaction = 1024
autovacuum = off
fsync = off
synchronous_commit = off
log_statement = none
));
$node->start;

my $settings = q({"versioning": {"version_column": "v", "ignore_columns": ["seen"], "blind_updates": "reject", "unchanged": "keep"},
    "transitions": {"status": {"transitions": {"it's \"new\"": ["b\\\\c"]}, "initial": [], "guards": {"it's \"new\"": {"b\\\\c": "\"Rules\".\"Why not\"(doc, doc)"}}}},
    "marker": {"ttl": "1 day 1 s", "notify": "full"}, "history": {"keep_for": "1 mon", "ignore_writers": ["it's"]},
    "ownership": {"columns": {"It's \"a": {"writer": "ed'itor \"\\\\", "on_violation": "skip", "once_changed": true}, "price": {"strategy": "merge", "blind_updates": "warn"}}, "groups": [["price", "qty"]]},
    "require_lease": {"{{it's \"\\\\\"}}/{id}": {"columns": ["seen", "It's \"a"]}}});
my $of_doc = q(SELECT interlock.configuration('doc'));
my $guards = q(SELECT rel, mechanism, enforced, findings, settings FROM interlock.guards ORDER BY 1, 2);

# A dump has all of it, and the restored table is configured as the migration says.
$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', qq(
    SET client_min_messages = error;
    CREATE EXTENSION pg_interlock;
    CREATE TABLE doc (id int, "It's ""a" text, status text, price int, qty int, seen int, PRIMARY KEY (id)) PARTITION BY LIST (id);
    CREATE TABLE doc_1 PARTITION OF doc FOR VALUES IN (1);
    CREATE SCHEMA "Rules";
    CREATE FUNCTION "Rules"."Why not"(old doc, new doc) RETURNS text LANGUAGE sql AS 'SELECT NULL::text';
    SELECT interlock.configure('doc', \$json\$$settings\$json\$);));
my ($configured, $listed) = ($node->safe_psql('source', $of_doc), $node->safe_psql('source', $guards));
is($node->safe_psql('source', qq(SELECT interlock.configure('doc', \$json\$$settings\$json\$))), '', 'CFG-1: a migration that is repeated changes nothing');
my $dump = $node->basedir . '/source.dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('source') ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE target');
$node->safe_psql('target', 'CREATE TABLE shift_the_oids (id int); DROP TABLE shift_the_oids;');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('target'), $dump ], 'pg_restore');
is($node->safe_psql('target', $of_doc), $configured, 'CFG-2: the settings are restored');
is($node->safe_psql('target', $guards), $listed, 'CFG-4: with those of the partition, and no finding');
is($node->safe_psql('target', qq(SELECT interlock.configure('doc', \$json\$$settings\$json\$))), '', 'CFG-1: nor does it change anything after a restore');
is($node->safe_psql('target', q(SELECT interlock.configure('doc', interlock.configuration('doc')))), '', 'nor do they themselves');

# A table that another session has locked is read all the same: both read the catalog alone. So is one that goes meanwhile.
my $locker = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('source') ], '<', \my $in, '>', \my $out, '2>', \my $err);
$in = "BEGIN; LOCK TABLE doc IN ACCESS EXCLUSIVE MODE; SELECT 'locked';\n";
$locker->pump until $out =~ /locked/;
is($node->safe_psql('source', "SET lock_timeout = '10ms'; $of_doc"), $configured, 'CFG-5: of a table that is locked');
is($node->safe_psql('source', "SET lock_timeout = '10ms'; SET client_min_messages = error; $guards"), $listed, 'CFG-5: in the view, too');
my ($result, undef, $error) = $node->psql('source', "SET lock_timeout = '10ms'; SELECT interlock.configure('doc', '{}')");
like($error, qr/canceling statement due to lock timeout/, 'configure waits, as ALTER TABLE does');
$in = "ROLLBACK;\n\\q\n";
$locker->finish;

# Tables, guards and types come and go while others list them.
my $ddl = $node->basedir . '/ddl.sql';
append_to_file($ddl, q(
\set n random(1, 5)
SELECT pg_advisory_lock(:n);
SET client_min_messages = error;
DROP TABLE IF EXISTS gone:n CASCADE;
DROP DOMAIN IF EXISTS gone_state:n CASCADE;
CREATE DOMAIN gone_state:n AS text;
CREATE TABLE gone:n (id int PRIMARY KEY, status gone_state:n);
CREATE FUNCTION gone_guard(old gone:n, new gone:n) RETURNS boolean LANGUAGE sql AS 'SELECT true';
SELECT count(*) FROM interlock.configure('gone:n', '{"versioning": {}, "marker": {}, "transitions": {"status": {"transitions": {"a": ["b"]}, "guards": {"a": {"b": "gone_guard(gone:n, gone:n)"}}}}, "ownership": {"columns": {"status": {"writer": "w"}}}}');
SELECT pg_advisory_unlock(:n);
));
my $view = $node->basedir . '/view.sql';
append_to_file($view, qq(SET client_min_messages = error;\nSELECT count(*), count(g.settings), count(g.findings) FROM interlock.guards g;\n));
$node->command_ok([ 'pgbench', '-n', '-c', 6, '-t', 20, '-f', "$ddl\@1", '-f', "$view\@2", $node->connstr('source') ], 'CFG-5: tables that are made and dropped while they are listed');

# Many tables.
my $tables = 2_000;
$node->safe_psql('postgres', qq(
    CREATE EXTENSION pg_interlock;
    CREATE SCHEMA many;
    CREATE PROCEDURE make_tables() LANGUAGE plpgsql AS \$\$
    BEGIN
        FOR t IN 1 .. $tables LOOP
            EXECUTE format('CREATE TABLE many.t%s (id int, v bigint)', t);
            EXECUTE format('CREATE TRIGGER zzz_interlock_version BEFORE UPDATE OR DELETE ON many.t%s FOR EACH ROW EXECUTE FUNCTION interlock_internal.version_trigger(''v'', ''allow'', ''move'')', t);
            IF t % 500 = 0 THEN COMMIT; END IF;
        END LOOP;
    END \$\$;));
$node->safe_psql('postgres', 'CALL make_tables()');
is($node->safe_psql('postgres', 'ANALYZE pg_catalog.pg_trigger, pg_catalog.pg_class, pg_catalog.pg_attribute; SELECT count(*), count(DISTINCT rel), bool_and(enforced), min(cardinality(findings)), max(settings::text) FROM interlock.guards'),
    "$tables|$tables|t|1|{\"unchanged\": \"move\", \"blind_updates\": \"allow\", \"ignore_columns\": [], \"version_column\": \"v\"}", 'CFG-4: two thousand tables');

# A server without preload: what needs it is found, with what to do.
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->restart;
my $findings = q(SELECT g.mechanism, g.enforced, g.findings FROM interlock.guards g WHERE rel = 'doc'::regclass AND g.findings <> '{}' ORDER BY 1);
is($node->safe_psql('source', $findings),
    "ownership|f|{\"the library was not preloaded: blind updates that were planned before it was loaded are not warned of\"}\n"
      . "require_lease|f|{\"shared_preload_libraries does not have the library: there are no leases, and writes are refused\"}\n"
      . 'versioning|f|{"the library was not preloaded: statements that were planned before it was loaded are refused"}', 'VER-16: without preload');
is($node->safe_psql('source', q(SET session_preload_libraries = 'auto_explain'; SELECT DISTINCT advice FROM interlock.advise() WHERE rel = 'doc'::regclass ORDER BY 1)),
    q(ALTER DATABASE source SET session_preload_libraries = 'auto_explain', 'pg_interlock' -- by a superuser; or add pg_interlock to shared_preload_libraries)
      . "\nthe administrator of the server adds pg_interlock to shared_preload_libraries, and restarts it", 'VER-16: with the advice');
$node->safe_psql('source', q(ALTER DATABASE source SET session_preload_libraries = 'pg_interlock'));
like($node->safe_psql('source', $findings), qr/^require_lease\|f[^\n]*$/, 'VER-16: a session that preloads it knows its statements, and has no leases');
is($node->safe_psql('source', qq(SELECT interlock.configure('doc', \$json\$$settings\$json\$))), '', 'configure works without');

done_testing();
