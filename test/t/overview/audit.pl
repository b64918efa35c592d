# View audit: who broke, forced, forgot, granted and configured what, and who may see and change that.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Server;

my $node = start_server('interlock.sweeper = off');

sub ask { return $node->safe_psql('postgres', $_[0]); }
sub as_role { my ($role, $sql) = @_; return ask("SET SESSION AUTHORIZATION $role; $sql"); }
sub audit
{
    my ($where, $columns) = @_;
    return 'SELECT concat_ws(\' \', ' . ($columns // 'role, kind, action, name, table_name, holder, reason, before, after') . ") FROM interlock.audit WHERE $where ORDER BY at";
}
sub refused { my ($role, $sql) = @_; my ($status, $out, $error) = $node->psql('postgres', "\\set VERBOSITY verbose\nSET SESSION AUTHORIZATION $role; $sql"); return $error =~ /ERROR:  (\w{5})/ ? $1 : "done: $out"; }

ask(q(
    CREATE ROLE owner; CREATE ROLE other; CREATE ROLE oncall; CREATE ROLE admin; CREATE ROLE monitor; CREATE ROLE watcher; CREATE ROLE app;
    GRANT pg_monitor TO monitor;
    GRANT CREATE ON SCHEMA public TO owner));
is(ask(audit('true')), '', 'nothing has happened');

# --- Grants ------------------------------------------------------------------------------------------------------

my $me = ask('SELECT current_user');
ask(q(SELECT interlock.grant_access('operator', 'oncall'), interlock.grant_access('administrator', 'admin'), interlock.grant_access('monitor', 'watcher')));
as_role('admin', q(SELECT interlock.grant_writer('pricing', 'app', may_force => true)));
as_role('admin', q(SELECT interlock.revoke_writer('pricing', 'app'), interlock.grant_writer('import', 'app', may_force => true)));
as_role('admin', q(SELECT interlock.grant_idempotency_scope('pay', 'public')));
as_role('admin', q(SELECT interlock.revoke_idempotency_scope('pay', 'public')));
is(ask(audit(q(kind = 'grant'))), join("\n", "$me grant grant_access operator oncall", "$me grant grant_access administrator admin", "$me grant grant_access monitor watcher",
    'admin grant grant_writer pricing app {"may_force": true, "is_default": false}', 'admin grant revoke_writer pricing app',
    'admin grant grant_writer import app {"may_force": true, "is_default": false}',
    'admin grant grant_idempotency_scope pay public', 'admin grant revoke_idempotency_scope pay public'), 'every grant and revocation');

# --- Configuration -----------------------------------------------------------------------------------------------

as_role('owner', q(CREATE TABLE page (id int PRIMARY KEY, price int, state text); CREATE TABLE line (id int PRIMARY KEY, page int REFERENCES page)));
my @calls = (q(enable_versioning('page')), q(enable_versioning('page', blind_updates => 'warn')), q(enable_marker('page', '1 day')), q(define_transitions('page', 'state', '{"a": ["b"]}')),
    q(own_columns('page', 'pricing', '{price}')), q(enable_history('page')), q(require_lease('page', 'page:{id}')), q(guard_children('line', 'page')),
    q(unguard_children('line', 'page')), q(unrequire_lease('page')), q(disable_history('page')), q(release_columns('page', '{price}')), q(drop_transitions('page', 'state')),
    q(disable_marker('page')), q(disable_versioning('page')));
as_role('owner', "SELECT interlock.$_") for @calls;
is(ask(audit(q(kind = 'configuration'), q(role, action, table_name, (SELECT string_agg(k, ',') FROM jsonb_object_keys(before) k)))), join("\n",
    'owner enable_versioning public.page versioning', 'owner enable_versioning public.page versioning', 'owner enable_marker public.page marker',
    'owner define_transitions public.page transitions', 'owner own_columns public.page ownership', 'owner enable_history public.page history',
    'owner require_lease public.page require_lease', 'owner guard_children public.line guard_children', 'owner unguard_children public.line guard_children',
    'owner unrequire_lease public.page require_lease', 'owner disable_history public.page history', 'owner release_columns public.page ownership',
    'owner drop_transitions public.page transitions', 'owner disable_marker public.page marker', 'owner disable_versioning public.page versioning'),
    'every call that configures a table, with what it has changed');
is(ask(q(SELECT string_agg(concat_ws(' ', coalesce(before #>> '{versioning,blind_updates}', '-'), coalesce(after #>> '{versioning,blind_updates}', '-')), ', ' ORDER BY at)
    FROM interlock.audit WHERE action LIKE '%versioning')), '- allow, allow warn, warn -', 'settings before and after');
as_role('owner', q(SELECT interlock.configure('page', '{"versioning": {"version_column": "version", "blind_updates": "reject"}}')));
is(ask(audit(q(at > (SELECT max(at) FROM interlock.audit WHERE action = 'disable_versioning')), q(action, after #>> '{versioning,blind_updates}'))),
    'enable_versioning reject', 'configure() by what it calls');
as_role('owner', q(SELECT interlock.configure('page', '{"versioning": {"version_column": "version", "blind_updates": "reject"}}')));
is(ask(q(SELECT count(*) FROM interlock.audit WHERE action = 'enable_versioning')), 3, 'repeated it changes nothing, and is not recorded');
as_role('owner', q(CREATE TABLE stock (id int PRIMARY KEY, left_over int NOT NULL)));
as_role('owner', "SELECT interlock.$_") for q(enable_escrow('stock', 'left_over')), q(enable_escrow('stock', 'left_over', 5)), q(disable_escrow('stock', 'left_over'));
is(ask(audit(q(table_name = 'public.stock'), q(role, action, coalesce(before #>> '{escrow,left_over,minimum}', '-'), coalesce(after #>> '{escrow,left_over,minimum}', '-')))),
    "owner enable_escrow - 0\nowner enable_escrow 0 5\nowner disable_escrow 5 -", 'counters');
# Each function of the owner that makes or drops a guard is one of those above.
is(ask(q(SELECT string_agg(p.proname, ' ' ORDER BY p.proname) FROM pg_proc p WHERE p.pronamespace = 'interlock'::regnamespace
    AND p.proname ~ '^(enable|disable|define|drop|own|release|require|unrequire|guard|unguard)_' AND p.proname <> ALL (ARRAY(SELECT action FROM interlock.audit)))),
    'define_idempotency_scope release_lease release_values release_values', 'no function was forgotten');
as_role('owner', q(BEGIN; SELECT interlock.enable_marker('page'); ROLLBACK));
is(ask(q(SELECT count(*) FROM interlock.audit WHERE action = 'enable_marker')), 1, 'what is rolled back was not done');
as_role('admin', q(SELECT interlock.define_idempotency_scope('pay', ttl => '2 days')));
as_role('admin', q(SELECT interlock.define_idempotency_scope('pay', ttl => '3 days')));
is(ask(audit(q(action = 'define_idempotency_scope'), q(role, name, coalesce(before ->> 'ttl', '-'), after ->> 'ttl'))), "admin pay - 2 days\nadmin pay 2 days 3 days", 'scopes');

# --- Break, force, forget ----------------------------------------------------------------------------------------

ask(q(SELECT interlock.acquire_lease('job', '1 day', holder => 'worker')));
as_role('oncall', q(SELECT interlock.break_lease('job', 'it hangs')));
is(ask(audit(q(kind = 'break'))), 'oncall break break_lease job worker it hangs', 'a broken lease');
as_role('owner', q(SELECT interlock.enable_marker('page', '1 day'), interlock.own_columns('page', 'pricing', '{price}'); INSERT INTO page (id, price) VALUES (1, 1);
    SELECT interlock.lock_row('page', 1, 'anna'); GRANT SELECT, UPDATE ON page TO oncall, app));
as_role('oncall', q(SELECT interlock.force_unlock_row('page', 1, 'she is away')));
is(ask(audit(q(action = 'force_unlock_row'))), 'oncall force force_unlock_row {"id": 1} public.page anna she is away', 'a marker that was taken');
ask(q(SELECT interlock.grant_idempotency_scope('pay', 'oncall'); SELECT interlock.idempotency_claim('pay', 'k')));
ask(q(SELECT interlock.idempotency_complete('pay', 'k', (SELECT token FROM interlock.idempotency))));
as_role('oncall', q(SELECT interlock.idempotency_forget('pay', 'k', 'wrong amount')));
is(ask(audit(q(kind = 'forget'))), 'oncall forget idempotency_forget pay:k wrong amount {"status": "completed", "attempt": 1}', 'a key that was forgotten');
as_role('app', q(BEGIN; SELECT interlock.set_writer('import', force => true); UPDATE page SET price = 2, version = version + 1 WHERE id = 1 AND version = 1; COMMIT));
is(ask(audit(q(action = 'forced_write'), 'role, table_name, holder, after')),
    'app public.page pricing {"rows": 1, "writer": "import", "columns": ["price"], "operation": "update"}', 'a write over an owner');
as_role('owner', q(BEGIN; SET LOCAL interlock.blind_updates = 'allow'; UPDATE page SET state = 'x'; COMMIT));
is(ask(audit(q(action = 'blind_update'), 'role, table_name')), 'owner public.page', 'SET LOCAL interlock.blind_updates');

# --- Who sees it, and who can change it --------------------------------------------------------------------------

my $all = ask('SELECT count(*) FROM interlock.audit');
is(as_role('monitor', 'SELECT count(*) FROM interlock.audit'), $all, 'pg_monitor sees all');
is(as_role('watcher', 'SELECT count(*) FROM interlock.audit'), $all, q(and so does a role with access of kind 'monitor'));
is(as_role('other', 'SELECT count(*) FROM interlock.audit'), 0, 'another role sees nothing');
is(as_role('oncall', 'SELECT string_agg(DISTINCT kind, \' \' ORDER BY kind) FROM interlock.audit'), 'break force forget', 'a role sees what it did');
is(as_role('owner', q(SELECT string_agg(DISTINCT action, ' ' ORDER BY action) FROM interlock.audit WHERE kind = 'force')), 'blind_update forced_write', 'and writes over the owners of its tables');
is(as_role('other', q(CREATE FUNCTION pg_temp.spy(text) RETURNS boolean COST 0.0001 LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'spied %', $1; END$$;
    SELECT count(*) FROM interlock.audit WHERE pg_temp.spy(name))), 0, 'a function of the reader sees no more rows than the reader');
for my $sql (q(INSERT INTO interlock.configuration_audit (changed_by, kind, action) VALUES ('app', 'grant', 'grant_writer')), 'DELETE FROM interlock.configuration_audit',
    'UPDATE interlock.configuration_audit SET changed_by = \'x\'', 'TRUNCATE interlock.configuration_audit', 'SELECT FROM interlock.configuration_audit',
    'CREATE TRIGGER t BEFORE INSERT ON interlock.configuration_audit FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()')
{
    is(refused($_, $sql), '42501', "$_ cannot: $sql") for 'owner', 'admin', 'oncall';
}
ok(ask(q(EXPLAIN SELECT * FROM interlock.audit WHERE kind = 'break')) !~ /configuration_audit c|write_log/, 'a kind that is not asked for is not read');

# --- A dump has it -----------------------------------------------------------------------------------------------

my $dump = $node->basedir . '/dump.sql';
$node->command_ok(['pg_dump', '-f', $dump, 'postgres'], 'the database is dumped');
$node->safe_psql('postgres', 'CREATE DATABASE again');
$node->command_ok(['psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, 'again'], 'and restored');
is($node->safe_psql('again', 'SELECT count(*) FROM interlock.audit'), $all, 'with its audit');
$node->safe_psql('again', q(SELECT interlock.grant_access('monitor', 'other')));
is($node->safe_psql('again', 'SELECT count(*) FROM interlock.audit'), $all + 1, 'which goes on');
$node->stop;
done_testing();
