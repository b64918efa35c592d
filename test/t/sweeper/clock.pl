# OPS-17: the system's clock is set back by an hour, and ahead again. The sweeper continues in both cases.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Clock;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $clock = Clock->new;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'");
{
    local @ENV{ $clock->names } = $clock->values;
    $node->start;
}
$node->safe_psql('postgres', q(
    CREATE EXTENSION pg_interlock;
    CREATE TABLE doc (id int PRIMARY KEY);
    INSERT INTO doc SELECT generate_series(1, 9);
    SELECT interlock.enable_marker('doc')));
my $row = 0;

sub lock_row { $row++; return $node->safe_psql('postgres', "SELECT interlock.lock_row('doc', $row, 'anna', '$_[0]')"); }
sub is_released { return $node->poll_query_until('postgres', "SELECT lock_status = 0 FROM doc WHERE id = $row"); }

lock_row('1 ms');
ok(is_released(), 'a marker is released');
$clock->set(-3600);
lock_row('1 ms');
ok(is_released(), 'and after the clock was set back');
lock_row('2 h'); # the launcher looks at the clock
$clock->set(0);
lock_row('1 ms');
ok(is_released(), 'and after it was set ahead');

$node->stop;
done_testing();
