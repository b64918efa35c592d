# What was granted is known to the standby that is promoted: whatever a session's synchronous_commit says, and
# also when it does not wait for the standby's answer.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', qq(
shared_preload_libraries = 'pg_interlock'
interlock.lease_durable_after = '10 s'
));
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION pg_interlock');
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$primary->append_conf('postgresql.conf', "synchronous_standby_names = 'standby'");
$primary->reload;
$primary->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
  or die 'no synchronous standby';

my $lost = $primary->safe_psql('postgres', "SELECT token FROM interlock.acquire_lease('k', '1 s')");
$standby->stop;
sleep 2;
my $acquire = "SELECT outcome FROM interlock.acquire_lease('k', '9 s')";
for my $level ('local', 'on')
{
    my ($status, $out, $error) =
      $primary->psql('postgres', "SET synchronous_commit = $level; SET statement_timeout = '1 s'; $acquire");
    is($out, '', "$level: nothing is granted that the standby does not know to be lost to another");
    like($error, qr/canceled while waiting for the synchronous standbys/, "$level: and the caller is told");
}
$standby->start;
is($primary->safe_psql('postgres', "SET statement_timeout = '60 s'; $acquire"), 'acquired', 'once it is there, it is granted');

$primary->stop('immediate');
$standby->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$standby->reload;
$standby->promote;
is($standby->safe_psql('postgres', "SELECT interlock.renew_lease('k', $lost) IS NULL"),
    't', 'who lost it cannot reclaim it from the promoted standby');
$standby->stop;
done_testing();
