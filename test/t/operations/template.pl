# Who may create the extension: superusers alone. Other roles get it with a template, and can dump and load what is theirs, as Rails and Django do.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Server;

my $node = start_server('interlock.sweeper_rescan = 1');
$node->safe_psql('postgres', 'CREATE ROLE dev LOGIN CREATEDB; CREATE ROLE app LOGIN; CREATE DATABASE owned OWNER dev');

sub dev { my ($database) = @_; return $node->connstr($database) . ' user=dev'; }
sub ask
{
    my ($database, $sql) = @_;
    my ($ret, $out, $err) = $node->psql($database, "\\set VERBOSITY verbose\n$sql", connstr => dev($database), on_error_stop => 1);
    return $err =~ /ERROR:  (\w{5}): (.*)/ ? "$1 $2" : $out;
}
sub create { my @options = @_; return $node->command_ok([ 'createdb', '--maintenance-db', dev('postgres'), @options ], "createdb @options"); }
sub load { my ($database, $file, $name) = @_; return $node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', $file, '-d', dev($database) ], $name); }
sub file { return "$PostgreSQL::Test::Utils::tmp_check/$_[0]"; }
my @ours_alone = qw(--no-comments --exclude-schema=interlock --exclude-schema=interlock_internal);

# --- It is not trusted ------------------------------------------------------------------------------------------------------

is($node->safe_psql('postgres', "SELECT DISTINCT superuser, trusted FROM pg_available_extension_versions WHERE name = 'pg_interlock'"), 't|f', 'superusers create it');
like(ask('owned', 'CREATE EXTENSION pg_interlock'), qr/^42501 permission denied to create extension/, "a database's owner does not");
like(ask('owned', 'CREATE SCHEMA interlock; CREATE EXTENSION IF NOT EXISTS pg_interlock SCHEMA interlock'), qr/^42501 /, 'not with a schema of its own');

# --- From the template ------------------------------------------------------------------------------------------------------

$node->safe_psql('template1', q(
    CREATE EXTENSION pg_interlock;
    SELECT interlock.grant_access('administrator', 'dev');
    SELECT interlock.define_idempotency_scope('pay', ttl => '2 days')));
create('shop');
is(ask('shop', q(CREATE EXTENSION IF NOT EXISTS pg_interlock;
    CREATE EXTENSION IF NOT EXISTS "pg_interlock" SCHEMA interlock;
    CREATE EXTENSION IF NOT EXISTS pg_interlock WITH SCHEMA interlock;
    SELECT 'there')), 'there', 'migrations find the extension: plain, of Rails, of pg_dump');
is(ask('shop', q(
    CREATE TABLE doc (id int PRIMARY KEY, body text, status text DEFAULT 'new');
    DO $$BEGIN
        PERFORM interlock.enable_versioning('doc'), interlock.enable_history('doc'), interlock.define_transitions('doc', 'status', '{"new": ["done"]}', '{new}');
        PERFORM interlock.grant_idempotency_scope('pay', 'dev'), interlock.grant_writer('importer', 'dev'), interlock.own_columns('doc', 'importer', '{body}');
    END$$;
    INSERT INTO doc VALUES (1, 'a'), (2, 'b');
    UPDATE doc SET status = 'done' WHERE id = 1 RETURNING version)), 2, 'the role guards tables of its own');
is(ask('shop', q(SELECT outcome FROM interlock.idempotency_claim('pay', 'k'))), 'acquired', 'and uses the access that the template has');
is(ask('shop', q(SELECT ttl FROM interlock.idempotency_scope)), '2 days', 'and its scopes');
is(ask('shop', q(SELECT outcome FROM interlock.acquire_lease('k', '1 hour'))), 'acquired', 'and leases');
$node->poll_query_until('postgres', q(SELECT EXISTS (SELECT FROM interlock.sweeper WHERE database = 'shop' AND last_error IS NULL))) or die;
pass('the sweeper looks after it');

# --- The role has no more rights than on any extension of a superuser --------------------------------------------------------

for ('DROP EXTENSION pg_interlock', 'ALTER EXTENSION pg_interlock ADD TABLE doc', "COMMENT ON EXTENSION pg_interlock IS ''", 'DROP SCHEMA interlock CASCADE',
    'CREATE FUNCTION interlock.f() RETURNS int LANGUAGE sql AS $$SELECT 1$$', 'ALTER FUNCTION interlock.sweep(int) OWNER TO dev',
    'SELECT * FROM interlock_internal.lease_store', 'SELECT * FROM interlock.idempotency', "SELECT interlock.grant_access('operator', 'dev')",
    "SELECT interlock.break_leases('*', 'x')", 'SELECT interlock_internal.note_lease_store()')
{
    like(ask('shop', $_), qr/^42501 /, "refused: $_");
}

# --- Its dumps ---------------------------------------------------------------------------------------------------------------

$node->command_fails_like([ 'pg_dump', '-f', file('all.sql'), dev('shop') ], qr/permission denied for|may lack SELECT privilege/, 'a whole dump reads what the role may not');
$node->command_ok([ 'pg_dump', @ours_alone, '-f', file('shop.sql'), dev('shop') ], 'pg_dump of what is its own');
create('copy');
load('copy', file('shop.sql'), 'it loads');
is(ask('copy', q(UPDATE doc SET status = 'done' WHERE id = 2 RETURNING version)), 2, 'with versions');
is(ask('copy', q(SELECT string_agg(row_data ->> 'status', ' ' ORDER BY row_data ->> 'version') FROM doc_history WHERE row_data ->> 'id' = '1')), 'new done', 'with history');
like(ask('copy', q(UPDATE doc SET status = 'new' WHERE id = 1)), qr/^IL002 /, 'with transitions');
like(ask('copy', q(UPDATE doc SET body = 'x' WHERE id = 1)), qr/^IL007 /, 'with owned columns');
is(ask('copy', "SELECT count(*) FROM interlock.advise() WHERE severity = 'broken'"), 0, 'and nothing is unprotected');

$node->command_ok([ 'pg_dump', '-Fc', @ours_alone, '-f', file('shop.dump'), dev('shop') ], 'in the custom format');
create('restored');
$node->command_ok([ 'pg_restore', '-e', '-d', dev('restored'), file('shop.dump') ], 'pg_restore');
is(ask('restored', q(UPDATE doc SET status = 'done' WHERE id = 2 RETURNING version)), 2, 'with versions, too');

# Rails: bin/rails db:schema:dump and db:test:prepare with config.active_record.schema_format = :sql
$node->command_ok([ 'pg_dump', '--schema-only', '--no-privileges', '--no-owner', @ours_alone, '-f', file('structure.sql'), dev('shop') ], 'structure.sql of Rails');
create('rails');
load('rails', file('structure.sql'), 'it loads');
is(ask('rails', q(INSERT INTO doc VALUES (1, 'a'); UPDATE doc SET status = 'done' RETURNING version)), 2, 'and protects');

# Django drops its test database and creates it, for each run
for (1, 2)
{
    create('test_shop');
    is(ask('test_shop', q(CREATE EXTENSION IF NOT EXISTS pg_interlock; CREATE TABLE a (id int PRIMARY KEY); SELECT interlock.enable_versioning('a');
        INSERT INTO a VALUES (1) RETURNING version)), "\n1", 'a test database of Django');
    $node->command_ok([ 'dropdb', '--maintenance-db', dev('postgres'), 'test_shop' ], 'is dropped');
}

# --- A superuser's dump, another template, none -------------------------------------------------------------------------------

$node->command_ok([ 'pg_dump', '-f', file('whole.sql'), $node->connstr('shop') ], 'a superuser dumps all');
$node->safe_psql('postgres', 'CREATE DATABASE whole TEMPLATE template0');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', file('whole.sql'), '-d', $node->connstr('whole') ], 'and loads it into an empty database');
is(ask('whole', q(SELECT outcome FROM interlock.idempotency_claim('pay', 'k'))), 'in_progress', 'with its keys and grants');

create('-T', 'template0', 'bare');
is(ask('bare', q(SELECT count(*) FROM pg_extension WHERE extname = 'pg_interlock')), 0, 'template0 has none');
$node->safe_psql('postgres', 'CREATE DATABASE guarded TEMPLATE template0 IS_TEMPLATE true');
$node->safe_psql('guarded', 'CREATE EXTENSION pg_interlock');
is($node->safe_psql('guarded', q(SELECT string_agg(outcome, ' ') FROM unnest('{1 s,1 hour}'::interval[]) ttl, LATERAL interlock.acquire_lease('k ' || ttl, ttl))), 'acquired acquired', 'leases in it');
create('-T', 'guarded', 'other');
is(ask('other', q(SELECT outcome FROM interlock.acquire_lease('k', '1 hour'))), 'acquired', 'LEA-50: a database of a template of its own has no grace');
is(ask('other', q(SELECT outcome FROM interlock.acquire_lease('k 01:00:00', '1 hour'))), 'acquired', 'LEA-50: and none of its leases');
is($node->safe_psql('guarded', 'SELECT count(*) FROM interlock.leases WHERE durable'), 1, 'which the template keeps');
$node->restart;
is(ask('other', q(SELECT string_agg(key, ', ' ORDER BY key) FROM interlock.leases)), 'k, k 01:00:00', 'it has its own after a restart');
is(ask('other', q(SELECT outcome FROM interlock.acquire_lease('another', '1 min'))), 'acquired', 'and no grace');
like(ask('other', q(SELECT interlock.grant_writer('x', 'dev'))), qr/^42501 /, 'has its own grants');

$node->stop;
done_testing();
