# SEC-1: what any role can make in temporary tables, in any number, concerns no other session: advise() and guards
# list it in that session alone.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server('interlock.sweeper = off');
$node->safe_psql('postgres', 'CREATE ROLE stranger LOGIN');
my $stranger = $node->background_psql('postgres', extra_params => ['-U', 'stranger']);
$stranger->query_safe(q(
    CREATE TEMP TABLE forged (a int, b bigint DEFAULT interlock.first_version('public.none'));
    CREATE TRIGGER s BEFORE UPDATE ON forged FOR EACH ROW EXECUTE FUNCTION interlock_internal.transition_trigger('gone', '{}', '', 'allow repeats');
    CREATE TRIGGER o BEFORE UPDATE ON forged FOR EACH ROW EXECUTE FUNCTION interlock_internal.ownership_trigger('gone', 'own:x', '')));
my $count = 'SELECT count(*) FROM interlock.advise()';
is($stranger->query_safe($count), 5, 'the session that has made them sees them');
is($node->safe_psql('postgres', $count), 0, 'another one does not');
is($node->safe_psql('postgres', 'SELECT count(*) FROM interlock.guards'), 0, 'in guards neither');
$stranger->quit;
$node->stop;
done_testing();
