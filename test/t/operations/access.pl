# What an application, a monitor, an operator and an administrator can do, from an empty cluster on: one statement for each role.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Server;

my $node = start_server('interlock.sweeper = off');
my $database = 'postgres';

# What a role gets from a query, with the SQLSTATE of an error
sub ask
{
    my ($role, $sql) = @_;
    my ($ret, $out, $err) = $node->psql($database, "\\set VERBOSITY verbose\n$sql",
        connstr => $node->connstr($database) . " user=$role", on_error_stop => 1);
    return $err =~ /ERROR:  (\w{5}): (.*)/ ? "$1 $2" : $out;
}
sub can { my ($role, $sql, $expected, $name) = @_; return is(ask($role, $sql), $expected, "$role can $name"); }
sub cannot { my ($role, $sql, $code, $name) = @_; return like(ask($role, $sql), qr/^$code /, "$role cannot $name"); }

my $administration = $node->safe_psql($database, 'SELECT current_user');
$node->safe_psql($database, q(
    CREATE ROLE app LOGIN;
    CREATE ROLE mon LOGIN;
    CREATE ROLE "on Call" LOGIN;
    CREATE ROLE deploy LOGIN;
    CREATE ROLE stranger LOGIN;
    CREATE SCHEMA shop AUTHORIZATION deploy;
    SELECT interlock.grant_access('monitor', 'mon');
    SELECT interlock.grant_access('operator', 'on Call');
    SELECT interlock.grant_access('ADMINISTRATOR', 'deploy');
));

# --- The administrator sets up an application -------------------------------------------------------------------------

unlike(ask('deploy', q(
    CREATE TABLE shop.page (id int PRIMARY KEY, body text, price int);
    SELECT interlock.enable_versioning('shop.page'), interlock.enable_marker('shop.page', '1 hour'),
        interlock.enable_history('shop.page'), interlock.own_columns('shop.page', 'pricing', '{price}');
    INSERT INTO shop.page (id, body) VALUES (1, 'a');
    GRANT USAGE ON SCHEMA shop TO app, mon, "on Call";
    GRANT SELECT, INSERT, UPDATE ON shop.page TO app;
    GRANT SELECT, UPDATE ON shop.page TO "on Call";
    SELECT interlock.define_idempotency_scope('pay');
    SELECT interlock.grant_idempotency_scope('pay', 'app');
    SELECT interlock.grant_writer('pricing', 'app')
)), qr/^\w{5} /, 'deploy can protect its tables and grant scopes and writers');
can('deploy', q(BEGIN; SELECT interlock.suppress_history('shop.page', 'import');
    UPDATE shop.page SET body = 'b'; COMMIT; SELECT operation || ' ' || row_count FROM interlock.operation_log), "1\nupdate 1", 'suppress the history of its table');
cannot('deploy', q(SELECT interlock.break_leases('*', 'x')), '42501', 'break leases');
cannot('deploy', q(SELECT response FROM interlock.idempotency), '42501', 'read stored responses');
cannot('deploy', q(SELECT interlock.grant_access('operator', 'deploy')), '42501 must be owner of extension', 'grant itself more');
cannot('deploy', q(DROP EXTENSION pg_interlock), '42501', 'drop the extension');

# --- The application ---------------------------------------------------------------------------------------------------

can('app', q(SELECT interlock.versioned_update('shop.page', 1, 2, '{"body": "c"}')), 3, 'update by version');
can('app', q(SELECT locked FROM interlock.lock_row('shop.page', 1, 'anna')), 't', 'mark a row');
can('app', q(SELECT outcome FROM interlock.acquire_lease('report', '1 hour', holder => 'worker')), 'acquired', 'acquire a lease');
can('app', q(SELECT outcome FROM interlock.idempotency_claim('pay', 'secret-1', '{"amount": 1}')), 'acquired', 'claim a key of its scope');
can('app', q(SELECT interlock.set_writer('pricing')), '', 'write as its writer');
cannot('app', q(SELECT * FROM interlock.idempotency_claim('mail', 'k')), '42501', 'claim a key of another scope');
cannot('app', q(SELECT interlock.set_writer('editor')), '42501', 'write as another writer');
for my $call (q(force_unlock_row('shop.page', 1, 'x')), q(break_lease('report', 'x')), q(break_leases('*', 'x')), 'confirm_stop()', q(end_grace('x', 1, '0')), 'sweep()',
    'idempotency_sweep()', 'reset_contention()', q(define_idempotency_scope('x')), q(grant_idempotency_scope('*', 'app')), q(revoke_idempotency_scope('pay', 'app')),
    q(idempotency_forget('pay', 'secret-1', 'x')), q(grant_writer('editor', 'app')), q(revoke_writer('pricing', 'app')), q(suppress_history('shop.page', 'x')))
{
    cannot('app', "SELECT interlock.$call", '42501 permission denied for function', "call $call");
    cannot('mon', "SELECT interlock.$call", '42501 permission denied for function', "call $call");
}
for my $role ('app', 'mon', '"on Call"', 'stranger')
{
    cannot($role =~ s/"//gr =~ s/ /\\ /r, q(SELECT interlock.grant_access('monitor', 'stranger')), '42501', 'grant access');
    cannot($role =~ s/"//gr =~ s/ /\\ /r, q(SELECT interlock.revoke_access('monitor', 'mon')), '42501', 'revoke it');
}
for my $table (qw(lease_audit row_lock_audit idempotency_audit writer_grant idempotency_grant idempotency write_log sweeper))
{
    cannot('app', "SELECT count(*) FROM interlock.$table", '42501', "read $table");
    like(ask('mon', "SELECT count(*) FROM interlock.$table"), qr/^\d+$/, "mon can read $table");
    cannot('mon', "DELETE FROM interlock.$table", '42501', "change $table") if $table ne 'sweeper';
}

# --- The operator -------------------------------------------------------------------------------------------------------

my $operator = 'on\ Call';
can($operator, q(SELECT interlock.force_unlock_row('shop.page', 1, 'anna has left')), 'anna', 'free a row');
can($operator, q(SELECT interlock.break_lease('report', 'it hangs')), 'worker', 'break a lease');
can($operator, q(SELECT count(*) FROM interlock.break_leases('*', 'x')), 1, 'break leases');
cannot($operator, q(SELECT interlock.confirm_stop()), '55000', 'confirm a stop on a primary');
cannot($operator, q(SELECT interlock.end_grace('x', 1, '0')), '55000', 'end a grace that is none');
can($operator, q(SELECT interlock.idempotency_sweep()), 0, 'delete expired keys');
can($operator, q(SELECT interlock.reset_contention()), '', 'reset the counters');
can($operator, q(SELECT count(*) FROM interlock.sweep()), 0, 'release expired markers');
cannot($operator, q(SELECT interlock.idempotency_forget('pay', 'secret-1', 'x')), '42501 idempotency scope', 'forget a key of a scope that it has not');
cannot($operator, q(SELECT interlock.grant_idempotency_scope('*', 'on Call')), '42501', 'grant itself a scope');
cannot($operator, q(SELECT interlock.grant_writer('pricing', 'on Call')), '42501', 'grant itself a writer');
cannot($operator, q(SELECT interlock.suppress_history('shop.page', 'x')), '42501', 'suppress history');
cannot($operator, q(SELECT * FROM interlock.lease_audit), '42501', 'read the audit without being a monitor');

# --- The monitor --------------------------------------------------------------------------------------------------------

can('mon', q(SELECT broken_by || ' ' || reason FROM interlock.lease_audit), 'on Call it hangs', 'read who broke a lease');
can('mon', q(SELECT reason FROM interlock.row_lock_audit), 'anna has left', 'read who freed a row');
can('mon', q(SELECT scope, count(*) FROM interlock.idempotency WHERE status = 'pending' GROUP BY scope), 'pay|1', 'count claims');
can('mon', q(SELECT operation, reason FROM interlock.write_log), 'update|import', 'read the write log');
cannot('mon', q(SELECT response FROM interlock.idempotency), '42501', 'read stored responses');
cannot('mon', q(SELECT token FROM interlock.idempotency), '42501', 'read tokens of claims');
cannot('mon', q(SELECT stored FROM interlock.write_log), '42501', 'read values of rows');
cannot('mon', q(SELECT * FROM interlock_internal.lease_store), '42501', 'read the secret of leases');

# --- Every right is in a list --------------------------------------------------------------------------------------------

is($node->safe_psql($database, q(
    SELECT p.oid::regprocedure FROM pg_proc p
     WHERE p.pronamespace = 'interlock'::regnamespace AND NOT has_function_privilege('public', p.oid, 'EXECUTE')
       AND (SELECT count(*) FROM unnest('{mon,on Call,deploy}'::name[]) r WHERE has_function_privilege(r, p.oid, 'EXECUTE')) <> 1
     ORDER BY 1)), '', 'every function that PUBLIC lacks is granted by one kind of access');
is($node->safe_psql($database, q(
    SELECT c.oid::regclass FROM pg_class c
     WHERE c.relnamespace = 'interlock'::regnamespace AND c.relkind IN ('r', 'v')
       AND NOT has_any_column_privilege('public', c.oid, 'SELECT') AND NOT has_any_column_privilege('mon', c.oid, 'SELECT')
     ORDER BY 1)), '', 'and every table and view to a monitor');
is($node->safe_psql($database, q(
    SELECT c.oid::regclass FROM pg_class c, unnest('{app,mon,on Call,deploy}'::name[]) r
     WHERE c.relnamespace IN ('interlock'::regnamespace, 'interlock_internal'::regnamespace) AND c.relkind IN ('r', 'v', 'p')
       AND has_any_column_privilege(r, c.oid, 'INSERT, UPDATE, REFERENCES')
     ORDER BY 1)), '', 'no kind can write a table of the extension');

# --- Dumps keep them; bad input; revoking ---------------------------------------------------------------------------------

$node->safe_psql($database, 'CREATE DATABASE restored');
my $dump = "$PostgreSQL::Test::Utils::tmp_check/access.sql";
$node->command_ok([ 'pg_dump', '-f', $dump, $node->connstr($database) ], 'pg_dump');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $node->connstr('restored') ], 'its restore');
$database = 'restored';
can('mon', 'SELECT count(*) FROM interlock.lease_audit', 1, 'read the audit in a restored database');
can($operator, q(SELECT count(*) FROM interlock.sweep()), 0, 'sweep there');

like(ask($administration, q(SELECT interlock.grant_access('owner', 'app'))), qr/^22023 unknown value "owner" for argument "kind"/, 'a kind that is none');
like(ask($administration, q(SELECT interlock.grant_access('application', 'app'))), qr/^22023 /, 'an application needs none');
like(ask($administration, q(SELECT interlock.grant_access('monitor', 'nobody here'))), qr/^42704 role "nobody here"/, 'a role that is none');
like(ask($administration, q(SELECT interlock.grant_access('monitor', 'public'))), qr/^42704 /, 'everybody');
like(ask($administration, q(SELECT interlock.grant_access(NULL, 'app'))), qr/^22004 argument "kind"/, 'a null');
like(ask($administration, q(SELECT interlock.revoke_access('monitor', NULL))), qr/^22004 argument "role"/, 'another null');
like(ask($administration, q(BEGIN READ ONLY; SELECT interlock.grant_access('monitor', 'app'))), qr/^25006 /, 'a read-only transaction');

# Twice: what is not granted is no error
for (1, 2)
{
    is(ask($administration, q(SELECT interlock.revoke_access('monitor', 'mon'), interlock.revoke_access('operator', 'on Call'),
        interlock.revoke_access('administrator', 'deploy'))), '||', 'access is revoked');
}
cannot('mon', 'SELECT count(*) FROM interlock.idempotency', '42501', 'read keys any more');
cannot($operator, q(SELECT interlock.break_leases('*', 'x')), '42501', 'break leases any more');
cannot('deploy', q(SELECT interlock.grant_writer('x', 'app')), '42501', 'grant a writer any more');
is($node->safe_psql($database, q(
    SELECT count(*) FROM pg_shdepend WHERE dbid = (SELECT oid FROM pg_database WHERE datname = 'restored')
       AND refobjid IN ('mon'::regrole, '"on Call"'::regrole) AND classid = 'pg_proc'::regclass)), 0, 'nothing is left of it');
can($operator, q(SELECT has_function_privilege('interlock.versioned_update(regclass, text, bigint, jsonb)', 'EXECUTE')), 't', 'call what everybody can');

$node->stop;
done_testing();
