# SEC-1: expressions of hundreds of megabytes, which any role can make, and whose first pages say what they are
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server('interlock.sweeper = off');

$node->safe_psql('postgres', q(CREATE ROLE stranger LOGIN;
    CREATE TABLE shared (id int PRIMARY KEY, a int);
    SELECT interlock.enable_versioning('shared')));

# As text, more characters than a regular expression can be applied to
my %made = (
    'a default' => q(CREATE TABLE long (a bigint);
        CREATE TRIGGER x BEFORE UPDATE ON long FOR EACH ROW EXECUTE FUNCTION interlock_internal.version_trigger('a', 'allow');
        DO $$ BEGIN EXECUTE format('ALTER TABLE long ALTER a SET DEFAULT length(%L)', repeat('a', 95000000)); END $$),
    'a default that reads a start' => q(CREATE TABLE long (a int);
        DO $$ BEGIN EXECUTE format('ALTER TABLE long ADD b bigint DEFAULT interlock.first_version(''public.shared_version_start'') + length(%L)', repeat('a', 95000000)); END $$),
    'a constraint' => q(CREATE TABLE long (status text);
        DO $$ BEGIN EXECUTE format('ALTER TABLE long ADD CHECK (status <> %L)', repeat('a', 95000000)); END $$));
for my $what (sort keys %made)
{
    $node->safe_psql('postgres', "CREATE SCHEMA AUTHORIZATION stranger; SET ROLE stranger; SET search_path = stranger; $made{$what}");
    for my $query ('interlock.guards', 'interlock.advise()')
    {
        my ($status, undef, $errors) = $node->psql('postgres', "SELECT count(*) FROM $query");
        is("$status $errors", '0 ', "$what: $query");
    }
    $node->safe_psql('postgres', 'DROP SCHEMA stranger CASCADE');
}

$node->stop;
done_testing();
