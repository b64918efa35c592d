# examples/patroni/end_grace runs SQL in each database, with a role that may end graces. The owners of the databases are not trusted:
# none of their functions, operators, views and types runs, wherever they put them. Each of its protections is taken away once, to
# show that something would run then.

use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($primary, $standby) = map { PostgreSQL::Test::Cluster->new($_) } 'a', 'b';
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', qq(
shared_preload_libraries = 'pg_interlock'
interlock.lease_durable_after = '10 min'
interlock.sweeper = off
log_connections = on
log_line_prefix = '%m %d: '
));
$primary->start;

sub sql
{
    my ($database, $role, @statements) = @_;
    return $primary->safe_psql($database, join(";\n", @statements), connstr => $primary->connstr($database) . ($role ? " user=$role" : ''));
}

# --- What an owner can make -----------------------------------------------------------------------------

# In schema "trap", something of each name that pg_catalog has: it writes "sprung" into the log, also on a standby. And in "public",
# which comes after pg_catalog: operators for those types of a catalog for which pg_catalog has none but by a cast.
my $trap = q(
    CREATE SCHEMA trap;
    CREATE FUNCTION trap.spring() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE LOG 'sprung as %', current_user; RETURN true; END $$;
    CREATE FUNCTION pg_temp.make(head text, result text) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        EXECUTE format('CREATE FUNCTION %s RETURNS %s LANGUAGE plpgsql AS %L', head, result,
            'BEGIN PERFORM trap.spring(); RETURN NULL; END');
    END $$;
    SELECT pg_temp.make(format('trap.%I(%s)', p.proname, pg_get_function_identity_arguments(p.oid)), format_type(p.prorettype, null))
      FROM pg_catalog.pg_proc p
     WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND NOT p.proretset AND p.provariadic = 0 AND p.proargmodes IS NULL
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_type t WHERE t.oid = ANY (p.proargtypes || p.prorettype) AND t.typtype = 'p');
    SELECT pg_temp.make(format('trap.of_operator_%s(%s, %s)', o.oid, o.oprleft::regtype, o.oprright::regtype), o.oprresult::regtype::text)
      FROM pg_catalog.pg_operator o
     WHERE o.oprname = '=' AND o.oprleft <> 0
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_type t WHERE t.oid IN (o.oprleft, o.oprright) AND t.typtype = 'p');
    SELECT pg_temp.make(format('public.of_types(%s, %s)', l, r), 'boolean')
      FROM unnest('{oid,regclass,regproc,name,text,"char"}'::regtype[]) l, unnest('{oid,regclass,regproc,name,text,"char"}'::regtype[]) r
     WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_operator o WHERE o.oprname = '=' AND o.oprleft = l AND o.oprright = r);
    DO $$
    DECLARE f record;
    BEGIN
        FOR f IN SELECT relname FROM pg_catalog.pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')
                    AND relname !~ '^pg_(stat|attribute$)' LOOP -- these have columns of pseudo-types
            EXECUTE format('CREATE VIEW trap.%I AS SELECT * FROM pg_catalog.%I WHERE trap.spring()', f.relname, f.relname);
        END LOOP;
        FOR f IN SELECT typname FROM pg_catalog.pg_type WHERE typname LIKE 'reg%' AND typtype = 'b' LOOP
            EXECUTE format('CREATE DOMAIN trap.%I AS pg_catalog.%I CHECK (trap.spring())', f.typname, f.typname);
        END LOOP;
        FOR f IN SELECT p.oid::regproc AS name, p.pronamespace::regnamespace AS schema, p.proargtypes[0]::regtype AS l, p.proargtypes[1]::regtype AS r
                   FROM pg_catalog.pg_proc p WHERE p.proname LIKE 'of\_%' AND p.pronamespace IN ('trap'::regnamespace, 'public'::regnamespace) LOOP
            EXECUTE format('CREATE OPERATOR %s.= (FUNCTION = %s, LEFTARG = %s, RIGHTARG = %s)', f.schema, f.name, f.l, f.r);
        END LOOP;
    END $$;
    GRANT USAGE ON SCHEMA trap, public TO PUBLIC;
    GRANT SELECT ON ALL TABLES IN SCHEMA trap TO PUBLIC);
my $imitation = q(
    CREATE SCHEMA interlock;
    CREATE FUNCTION interlock.confirm_stop(OUT run bigint, OUT time_left interval) LANGUAGE plpgsql AS $$
        BEGIN RAISE LOG 'sprung as %', current_user; run := 1; time_left := '0'; END $$;
    CREATE FUNCTION interlock.end_grace(text, bigint, interval) RETURNS timestamptz LANGUAGE plpgsql AS $$
        BEGIN RAISE LOG 'sprung as %', current_user; RETURN now(); END $$;
    GRANT USAGE ON SCHEMA interlock TO PUBLIC);

sql('postgres', '', 'CREATE ROLE untrusted LOGIN', 'CREATE ROLE switchover LOGIN');
# By the search_path of the database, of the role, and by the default.
my @with_leases = qw(by_database by_role by_default);
for my $database (@with_leases)
{
    sql('postgres', '', "CREATE DATABASE $database OWNER untrusted");
    sql($database, '', 'CREATE EXTENSION pg_interlock', 'GRANT EXECUTE ON FUNCTION interlock.confirm_stop, interlock.end_grace TO switchover',
        q(SELECT interlock.acquire_lease('k')));
    sql($database, 'untrusted', $trap);
}
sql('by_database', 'untrusted', 'ALTER DATABASE by_database SET search_path = trap, pg_catalog');
sql('by_role', '', 'ALTER ROLE switchover IN DATABASE by_role SET search_path = trap, pg_catalog');
# It has no leases, and functions that look like those of the extension.
sql('postgres', '', 'CREATE DATABASE imitation OWNER untrusted');
sql('imitation', 'untrusted', $imitation);

# --- A switchover -----------------------------------------------------------------------------------------

$primary->backup('base');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby);
$primary->stop('fast');
($primary, $standby) = ($standby, $primary);
$primary->promote;
$standby->append_conf('postgresql.conf', "primary_conninfo = '" . $primary->connstr . "'");
$standby->set_standby_mode;
$standby->start;
$primary->wait_for_catchup($standby);

# What Patroni would answer.
my $folder = PostgreSQL::Test::Utils::tempdir();
append_to_file("$folder/cluster", '{"members": [' . join(', ', map { sprintf '{"name": "%s", "host": "%s", "port": %d}', $_->name, $_->host, $_->port }
    $primary, $standby) . ']}');
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $api = IPC::Run::start([ 'python3', '-m', 'http.server', '--bind', '127.0.0.1', '--directory', $folder, $port ], '<', \undef, '&>', "$folder/api.log");

my %seen; # the length of each log when the last program began
sub new_lines { return join('', map { slurp_file($_->logfile, $seen{ $_->name } // 0) } $primary, $standby); }

my $programs = 0;

# start_program(PATTERN, REPLACEMENT): the callback, with another text where the pattern matches.
sub start_program
{
    my ($pattern, $replacement) = @_;
    my $text = slurp_file('examples/patroni/end_grace');
    if (defined $pattern) { $text =~ s/$pattern/$replacement/ or die "the callback has no $pattern"; }
    append_to_file(my $file = "$folder/end_grace" . ++$programs, $text);
    $seen{ $_->name } = -s $_->logfile for $primary, $standby;
    return IPC::Run::start([ 'python3', $file, "127.0.0.1:$port", 'user=switchover', 'on_role_change', 'primary', 'scope' ], '<', \undef, '&>', "$file.log");
}

sub wait_for_log
{
    my ($pattern) = @_;
    for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default) { return 1 if new_lines() =~ $pattern; select undef, undef, undef, 0.1; }
    return 0;
}

for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
    last if qx(python3 -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:$port/cluster')" 2>&1) eq '';
    select undef, undef, undef, 0.1;
}
is(sql($_, '', 'SET search_path = pg_catalog', q(SELECT outcome FROM interlock.acquire_lease('l'))), 'recovering', "$_ has a grace") for @with_leases;
my $program = start_program();
ok($program->finish, 'the callback ends');
my $lines = new_lines();
like($lines, qr/$_: LOG:  connection authorized: user=switchover/, "it was in database $_") for @with_leases, 'imitation';
unlike($lines, qr/LOG:  sprung/, 'no code of others ran');
is(sql($_, '', 'SET search_path = pg_catalog', q(SELECT action, role FROM interlock.audit WHERE action = 'end_grace')), 'end_grace|switchover',
    "the grace of $_ was ended") for @with_leases;

# --- Without its protections --------------------------------------------------------------------------------

sub runs_without
{
    my ($database, $name, $pattern, $replacement) = @_;
    my $unprotected = start_program($pattern, $replacement);
    ok(wait_for_log(qr/$database: LOG:  sprung as switchover/), "$name: code of $database runs");
    $unprotected->kill_kill;
    return;
}
runs_without($_, 'without its search_path', qr/-c search_path=\S+ /, '') for @with_leases;
runs_without('imitation', 'without the check of the extension', qr/SELECT EXISTS \(.*?\) AS is_present/s, 'SELECT true AS is_present');

# The primary refuses the connection, so that nothing is known of the database. The standby does not know of that yet.
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
sql('postgres', 'untrusted', 'ALTER DATABASE imitation CONNECTION LIMIT 0');
$program = start_program();
ok(wait_for_log(qr/(?:imitation: LOG:  connection authorized: user=switchover.*){2}/s), 'what the primary does not answer, the standby is asked');
$program->kill_kill;
unlike(new_lines(), qr/LOG:  sprung/, 'and no code of others ran');

$api->kill_kill;
$_->stop for $standby, $primary;
done_testing();
