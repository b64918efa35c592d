# script/top: what it shows at 80 and at 200 columns, with names that are hostile to terminals, on a standby and without preload.
# only with --long

use strict;
use warnings;
use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = "$FindBin::RealBin/../../../script/top";
my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1, extra => ['--encoding=UTF8', '--no-locale']);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'\ninterlock.sweeper = off");
$node->start;
sub ask { return $node->safe_psql('postgres', $_[0]); }

# The lines that it prints.
sub look
{
    my ($server, @options) = @_;
    my ($out, $error);
    my $ok = IPC::Run::run([$top, '--once', @options, $server->connstr('postgres')], '>', \$out, '2>', \$error);
    ok($ok, "top --once @options") or diag($error);
    is($error, '', 'without an error');
    utf8::decode($out);
    return split /\n/, $out;
}

# Columns of a terminal: two for what is wide.
sub wide { my ($line) = @_; my $more = () = $line =~ /[\x{1100}-\x{115f}\x{2e80}-\x{ffdc}\x{1f300}-\x{1faff}]/g; return length($line) + $more; }
sub fits { my ($width, @lines) = @_; is(scalar(grep { wide($_) > $width } @lines), 0, "no line is longer than $width") or diag(join "\n", @lines); return; }

my ($out, $error);
IPC::Run::run([$top, '--once', $node->connstr('postgres')], '>', \$out, '2>', \$error);
like($error, qr/CREATE EXTENSION pg_interlock/, 'without the extension it says what to do');
unlike($error, qr/zero/, 'and nothing else');

# --- Views of a stranger -----------------------------------------------------------------------------------------

# The owner of a database may make views of these names. Their functions would run with the rights of the role that looks.
ask('CREATE ROLE owner');
ask('CREATE DATABASE trap OWNER owner');
$node->safe_psql('trap', q(SET SESSION AUTHORIZATION owner; CREATE SCHEMA interlock;
    CREATE FUNCTION interlock.spy() RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION E'\x1b[2Jspied'; END$$;
    CREATE VIEW interlock.blocking AS SELECT interlock.spy(); CREATE VIEW interlock.usage AS SELECT interlock.spy()));
($out, $error) = ('', '');
IPC::Run::run([$top, '--once', $node->connstr('trap')], '>', \$out, '2>', \$error);
unlike($error, qr/spied/, 'views that are not of the extension are not read');
like($error, qr/CREATE EXTENSION pg_interlock/, 'as if they were not there');
($out, $error) = ('', '');
IPC::Run::run([$top, '--once', $node->connstr("no\x1b[2J\xc2\x9bsuch")], '>', \$out, '2>', \$error);
like($error, qr/no\?\[2J\?such/, 'what drives a terminal does not reach it in a message either');
ask('CREATE EXTENSION pg_interlock');
my @quiet = look($node, '--width', 80);
like("@quiet", qr/held: nothing; waiting: 0/, 'a quiet server');

# --- Holds and waits ---------------------------------------------------------------------------------------------

my $wide_name = "\x{6f22}\x{5b57}" x 40;
utf8::encode($wide_name);
my $emoji = "\x{1f512}" x 30;
utf8::encode($emoji);
my $hostile = "E'\\x1b[2Jred\\x1b[31m\\nline\\ttab\\u202eright\\u0085'";
ask(qq(SELECT interlock.acquire_lease('job', '1 day', holder => 'worker 1'), interlock.acquire_lease($hostile, '1 day', holder => $hostile),
    interlock.acquire_lease('$wide_name', '1 day', holder => '$emoji'), interlock.acquire_lease(repeat('long', 100), '1 day', holder => repeat('h', 200))));
ask(q(CREATE TABLE "Odd
table" (id int PRIMARY KEY); INSERT INTO "Odd
table" VALUES (1); SELECT interlock.enable_marker('"Odd
table"', '1 day'); SELECT interlock.lock_row('"Odd
table"', 1, 'anna')));
my $holder = $node->background_psql('postgres', on_error_stop => 0);
$holder->query_safe(q(SET application_name = 'batch'; BEGIN; SELECT interlock.lock_key('doc')));
my @waiters = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
$waiters[0]->query_until(qr/started/, "\\echo started\nSELECT interlock.acquire_lease('job', wait => '1 day');\n");
$waiters[1]->query_until(qr/started/, "\\echo started\nSELECT interlock.lock_key('doc');\n");
ok($node->poll_query_until('postgres', 'SELECT count(*) = 2 FROM interlock.blocking'), 'two sessions wait');

for my $width (80, 200)
{
    my @lines = look($node, '--width', $width, '--lines', 20);
    fits($width, @lines);
    my $screen = join "\n", @lines;
    unlike($screen, qr/[\x00-\x09\x0b-\x1f\x7f-\x9f\x{202a}-\x{202e}]/, 'no control character reaches the terminal');
    like($screen, qr/held: lease 4, key 1, marker 1; waiting: 2$/m, 'holds by kind');
    like($screen, qr/^lease +job +worker 1.* 1$/m, 'a lease with its holder, and that one waits for it');
    like($screen, qr/^lease +\?\[2Jred/m, 'controls are question marks');
    like($screen, qr/^marker +public\."Odd\?table" \{"i/m, 'in names of tables, too');
    like($screen, qr/^key +doc +batch .* 1$/m, 'a key lock with its session');
    like($screen, qr/^\d+ +lease +job +\d+s +worker/m, 'a wait for a lease');
    like($screen, qr/^\d+ +key +doc +\d+s +\d+ +\d+ +batch +idle/m, 'and for a key lock, with what the head of the chain does');
    like($screen, qr/^HOTTEST +table or keys +calls +refused +waits/m, 'totals at the first look');
    like($screen, qr/^lease +job +\d/m, 'hot keys');
    like($screen, qr/~/, 'what is cut is marked');
}
my @few = look($node, '--width', 80, '--lines', 1);
is(scalar(grep { /^(lease|key|marker|applock|permit|claim) .* \d*$/ && !/\.\d/ } @few) <= 2, 1, 'as many lines as asked for');

# --- Again and again ---------------------------------------------------------------------------------------------

my $file = $node->basedir . '/screens';
my $loop = IPC::Run::start([$top, '--interval', 1, '--width', 80, '--lines', 20, $node->connstr('postgres')], '<', \undef, '>', $file, '2>&1');
my ($screens, $work) = ('', 0);
until ($screens =~ m{HOTTEST[^\n]*calls/s[^\n]*\nlease +job}s || $work++ > 1000)
{
    ask(q(SELECT interlock.acquire_lease('job')));
    $screens = slurp_file($file);
}
$loop->kill_kill;
like($screens, qr{calls/s +refused/s +waits/s}, 'rates from the second look on');
like($screens, qr/^\e\[H\e\[2J/, 'on a cleared screen');

# --- A standby, a role, no preload -------------------------------------------------------------------------------

ask('SELECT count(pg_terminate_backend(pid)) FROM interlock.blocking');
$_->{run}->kill_kill for @waiters;
$holder->quit;
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
my @standby = look($standby, '--width', 80);
like($standby[0], qr/standby/, 'a standby says so');
like("@standby", qr/held: marker 1;/, 'and shows what it has');
$standby->stop;
ask('CREATE ROLE stranger LOGIN');
($out, $error) = ('', '');
ok(IPC::Run::run([$top, '--once', '--width', 80, $node->connstr('postgres') . ' user=stranger'], '>', \$out, '2>', \$error), 'a role without rights');
like($out, qr/held: lease 4; /, 'sees what the views show it');
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->restart;
my @bare = look($node, '--width', 80);
like($bare[0], qr/not preloaded/, 'a server without preload says so');
like("@bare", qr/held: marker 1;/, 'and shows what it has');

($out, $error) = ('', '');
ok(!IPC::Run::run([$top, '--once', 'port=1 host=/nowhere'], '>', \$out, '2>', \$error), 'a server that is not there is an error');
like($error, qr/nowhere/, 'that says so');
$node->stop;
done_testing();
