# REL-1: the library and the SQL of a database are of different versions: what works goes on, and what does not says so. The SQL
# gets another version in the catalog; the library is the present one.

use strict;
use warnings;
use File::Copy;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Protocol;
use Server;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_server("interlock.sweeper = on\nautovacuum = off");

sub ask { return $node->safe_psql('postgres', $_[0]); }

# What psql prints as errors, warnings and hints
sub complaints
{
    my ($sql) = @_;
    my ($status, $out, $err) = $node->psql('postgres', $sql, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
    return $err;
}

sub set_sql_version { ask("SET allow_system_table_mods = on; UPDATE pg_extension SET extversion = '$_[0]' WHERE extname = 'pg_interlock'"); return; }

my ($version) = slurp_file('pg_interlock.control') =~ /^default_version = '(.*)'$/m;
my ($major, $minor, $patch) = split /\./, $version;
my ($next_patch, $next_minor) = ("$major.$minor." . ($patch + 1), "$major." . ($minor + 1) . '.0');

is(ask('SELECT library, sql FROM interlock.version()'), "$version|$version", 'interlock.version() has both versions');

ask(q(CREATE TABLE doc (id int PRIMARY KEY, note text);
      SELECT interlock.enable_versioning('doc');
      INSERT INTO doc VALUES (1, 'a')));
my $save = q(SELECT interlock.versioned_update('doc', 1, (SELECT version FROM doc), '{"note": "b"}'));

# --- SQL that the library works with --------------------------------------------------------------------------------------

set_sql_version($next_patch);
my $err = complaints("$save; $save; UPDATE doc SET note = 'c'");
my $mismatch = qr/the pg_interlock library is version \Q$version\E, and its SQL in database "postgres" is version/;
is(() = $err =~ /^.*WARNING: .*$mismatch \Q$next_patch\E$/mg, 1, 'REL-1: a session is warned once');
unlike($err, qr/ERROR/, 'REL-1: and works with newer SQL that differs in the last number');
like($err, qr/HINT:  Install the library of version \Q$next_patch\E and restart/, 'REL-1: the hint is to load the newer library');
is(ask('SELECT library, sql FROM interlock.version()'), "$version|$next_patch", 'REL-1: interlock.version() has both');

# --- SQL that it does not work with ---------------------------------------------------------------------------------------

my $connected = start($node);
my $touch = 'UPDATE doc SET note = note RETURNING version';
like(query($connected, $touch), qr/^\d+$/, 'a session is connected');
set_sql_version($next_minor);
for my $call ($save, $touch, "SELECT interlock.enable_history('doc')", q(SELECT interlock.grant_writer('a', 'pg_monitor')))
{
    like(complaints($call), qr/ERROR:  55000: $mismatch \Q$next_minor\E\n.*HINT:  Install the library of version \Q$next_minor\E/s,
        "REL-1: refused: $call");
}
like(query($connected, $touch), qr/^\d+$/, 'REL-1: a session that was connected during the upgrade goes on');
is(ask('SELECT library, sql FROM interlock.version()'), "$version|$next_minor", 'REL-1: interlock.version() is not refused');

for my $old ('0.0.1', 'mine')
{
    set_sql_version($old);
    like(complaints($save), qr/ERROR:  55000: $mismatch \Q$old\E\n.*HINT:  ALTER EXTENSION pg_interlock UPDATE;/s,
        "REL-1: refused: SQL of version $old");
}

# --- The sweeper logs it once ---------------------------------------------------------------------------------------------

sub wake_until
{
    my ($condition, $name) = @_;
    ok($node->poll_query_until('postgres', "SELECT ($condition) FROM interlock.sweeper, interlock_internal.wake_sweeper() WHERE database = 'postgres'"), $name);
    return;
}

# A version that no worker can have seen before
my $later = "$major." . ($minor + 2) . '.0';
set_sql_version($later);
wake_until("last_error ~ 'library is version .* is version $later'", 'REL-1: the view sweeper says why nothing is swept');
my $runs = ask("SELECT runs FROM interlock.sweeper WHERE database = 'postgres'");
wake_until("runs > $runs + 2", 'REL-1: it looks again');
is(() = slurp_file($node->logfile) =~ /LOG: .*$mismatch \Q$later\E$/mg, 1, 'REL-1: and has logged it once');
set_sql_version($version);
wake_until('last_error IS NULL', 'REL-1: it goes on when the versions fit');
is(complaints("$save; $touch"), '', 'REL-1: so does everything else');

# --- A function of another version ----------------------------------------------------------------------------------------

like(complaints(q(CREATE FUNCTION pg_temp.version(OUT library text, OUT sql text, OUT built text) LANGUAGE c AS '$libdir/pg_interlock', 'interlock_version';
        SELECT * FROM pg_temp.version())),
    qr/ERROR:  55000: the function returns 3 columns, and 2 in version \Q$version\E of the pg_interlock library/,
    'REL-1: a function with columns that the library does not have is refused');
like(complaints(q(CREATE FUNCTION pg_temp.usage(OUT what text, OUT database text, OUT role text, OUT used bigint, OUT "of" bigint, OUT since timestamptz)
            RETURNS SETOF record LANGUAGE c AS '$libdir/pg_interlock', 'list_usage';
        SELECT * FROM pg_temp.usage())),
    qr/ERROR:  55000: the function returns 6 columns, and 5 in version \Q$version\E of the pg_interlock library/,
    'REL-1: so is one that returns several rows');

# --- ALTER EXTENSION ------------------------------------------------------------------------------------------------------

like(complaints("ALTER EXTENSION pg_interlock UPDATE TO '0.0.1'"), qr/has no update path from version "\Q$version\E" to version "0\.0\.1"/,
    'REL-1: a downgrade is refused by the server');
like(complaints("SELECT interlock_internal.require_library('$next_patch')"),
    qr/ERROR:  55000: version \Q$next_patch\E of the pg_interlock library is needed, and version \Q$version\E is loaded.*HINT: .*restart the server/s,
    'REL-1: a script that upgrades asks for the library of its version');
is(complaints("SELECT interlock_internal.require_library('$version'), interlock_internal.require_library('0.0.1')"), '', 'REL-1: the present one and older ones are there');
like(complaints("SELECT interlock_internal.require_library('$_')"), qr/ERROR:  22023: argument "version" must be three numbers/, "REL-1: no version: $_")
    for '1', '1.2', '1.2.3.4', '1.2.x', '1.2.', '';

# --- Without the extension, and without the library in preload ------------------------------------------------------------

ask('CREATE DATABASE empty');
is($node->safe_psql('empty', "SELECT count(*) FROM pg_extension WHERE extname = 'pg_interlock'"), 0, 'a preloaded library needs no extension');
is($node->safe_psql('empty', q(CREATE EXTENSION pg_interlock; SELECT outcome FROM interlock.acquire_lease('k'))), 'acquired', 'and serves it from its creation on');

$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
like(complaints("SELECT interlock.acquire_lease('k')"), qr/ERROR:  55000: .*preload.*HINT:  .*shared_preload_libraries = 'pg_interlock'/s,
    'without preload leases are refused, with what to do');
is(complaints("$save; $touch"), '', 'and versions work');
set_sql_version($next_minor);
like(complaints($save), qr/ERROR:  55000: $mismatch \Q$next_minor\E\n/, 'REL-1: the versions are compared without preload too');

# Two files, of which one is preloaded
my $other = PostgreSQL::Test::Utils::tempdir() . '/other.so';
copy($node->config_data('--pkglibdir') . '/pg_interlock.so', $other) or die "$other: $!";
$node->append_conf('postgresql.conf', "shared_preload_libraries = '$other'");
$node->restart;
like(complaints($save), qr/ERROR:  55000: version \Q$version\E of the pg_interlock library is loaded already, from another file\n.*HINT:  .*shared_preload_libraries/s,
    'REL-1: a second library file is refused') for 1, 2;
is(complaints('DROP EXTENSION pg_interlock CASCADE') =~ /ERROR/, '', 'REL-1: the extension can be dropped');

$node->stop;
done_testing();
