# A role that owns databases locks their catalogs while workers of the sweeper start there: they are ended, and the databases of
# others have their turn.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Protocol;
use Server;
use Test::More;

my $node = start_server(qq(interlock.sweeper_rescan = '1s'\n));
$node->safe_psql('postgres', 'CREATE TABLE page (id int PRIMARY KEY)');
$node->safe_psql('postgres', "INSERT INTO page VALUES (1); SELECT interlock.enable_marker('page'); CREATE ROLE mallory");

# One worker waits when it looks for its tables, the other one already when it connects
my %catalog = (looks => 'pg_trigger', connects => 'pg_class');
my (@readers, @vacuums);
sub waiting { my ($mode, $database) = @_; return "SELECT count(*) FROM pg_locks l, pg_database d WHERE d.oid = l.database AND datname ~ '$database' AND mode = '$mode' AND NOT granted"; }
for my $database (qw(looks connects))
{
    $node->safe_psql('postgres', "CREATE DATABASE $database OWNER mallory");
    $node->safe_psql($database, q(CREATE EXTENSION pg_interlock; CREATE TABLE page (id int PRIMARY KEY); INSERT INTO page VALUES (1);
        SELECT interlock.enable_marker('page')));
    push @readers, Protocol::start($node, $database);
    push @vacuums, Protocol::start($node, $database);
    Protocol::query($_, 'SET ROLE mallory') for $readers[-1], $vacuums[-1];
    $node->safe_psql($database, "SELECT interlock.lock_row('page', 1, 'anna', '3 s')");
    Protocol::query($readers[-1], "BEGIN; SELECT count(*) FROM $catalog{$database}");
    Protocol::send_query($vacuums[-1], "VACUUM FULL $catalog{$database}");
    my $waits = waiting('AccessExclusiveLock', $database);
    ok($node->poll_query_until('postgres', "SELECT ($waits) = 1"), "the owner has locked $catalog{$database}");
}
my $stuck = waiting('AccessShareLock', 'looks|connects');
ok($node->poll_query_until('postgres', "SELECT ($stuck) = 2"), 'both workers wait');
$node->safe_psql('postgres', "SELECT interlock.lock_row('page', 1, 'anna', '1 ms')");
ok($node->poll_query_until('postgres', 'SELECT lock_status = 0 FROM page'), 'another database has its turn');
for my $round (1 .. 2)
{
    $node->safe_psql('postgres', "SELECT interlock.lock_row('page', 1, 'anna', '1 ms')");
    ok($node->poll_query_until('postgres', 'SELECT lock_status = 0 FROM page'), "and again ($round)");
}
ok($node->poll_query_until('postgres', "SELECT bool_and(last_error ~ 'ended before it was done') FROM interlock.sweeper WHERE database IN ('looks', 'connects')"),
    'the view says that workers were ended');
Protocol::query($_, 'ROLLBACK') for @readers;
Protocol::receive($_) for @vacuums;
ok($node->poll_query_until($_, 'SELECT lock_status = 0 FROM page'), "$_ is swept when it can be") for qw(looks connects);

done_testing();
