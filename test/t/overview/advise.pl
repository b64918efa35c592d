# advise() beyond one session: a server that does not preload the library, and many tables.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Server;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_server("interlock.sweeper = off\nfsync = off\nmax_locks_per_transaction = 1024\nautovacuum = off");
my $finding = q(SELECT coalesce(rel::text, 'the server'), finding, evidence, advice FROM interlock.advise());

# ADV-1: what needs preload.
$node->safe_psql('postgres', q(
    SET client_min_messages = error;
    CREATE TABLE document (id int PRIMARY KEY);
    CREATE TABLE page (id int PRIMARY KEY);
    CREATE TABLE book (id int PRIMARY KEY);
    SELECT interlock.enable_marker('document'), interlock.enable_history('page', 10), interlock.enable_history('book');));
is($node->safe_psql('postgres', $finding), '', 'ADV-1: nothing while the library is preloaded');
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->restart;
is($node->safe_psql('postgres', $finding),
    'the server|shared_preload_libraries does not have the library: no worker releases expired markers, nor trims histories|'
      . 'tables with markers: 1, with histories of a limited length: 1|the administrator of the server adds pg_interlock to shared_preload_libraries, and restarts it',
    'ADV-1: that nothing is swept');
$node->safe_psql('postgres', q(DROP TABLE document; SELECT interlock.disable_history('page')));
is($node->safe_psql('postgres', $finding), '', 'ADV-1: a history of any length needs no worker');

# Many tables: a third has nothing to find, a third is to be guarded, a third is guarded.
my $tables = 900;
$node->safe_psql('postgres', qq(
    CREATE SCHEMA many;
    CREATE PROCEDURE make_tables() LANGUAGE plpgsql AS \$\$
    BEGIN
        FOR t IN 1 .. $tables LOOP
            EXECUTE format('CREATE TABLE many.t%s (id int, v bigint, version int, lock_by text, status text CHECK (status IN (''a'', ''b'')))', t);
            IF t % 3 = 0 THEN
                EXECUTE format('ALTER TABLE many.t%s DROP version, DROP lock_by, DROP status', t);
            ELSIF t % 3 = 1 THEN
                EXECUTE format('CREATE TRIGGER zzz_interlock_version BEFORE UPDATE OR DELETE ON many.t%s FOR EACH ROW '
                    'EXECUTE FUNCTION interlock_internal.version_trigger(''version'', ''allow'', ''move'')', t);
            END IF;
            IF t % 500 = 0 THEN COMMIT; END IF;
        END LOOP;
    END \$\$;));
$node->safe_psql('postgres', 'CALL make_tables()');
is($node->safe_psql('postgres', q(
    SELECT regexp_replace(finding, '"[a-z_]+"', '?'), count(*), count(DISTINCT rel) FROM interlock.advise() GROUP BY 1 ORDER BY 1)),
    "column ? belongs to a manual lock: other writers need not look at it, and it does not expire; with a marker the program calls lock_row and save_row|600|600\n"
      . "column ? has a list of states, and may change from each to each|600|600\n"
      . "column ? has no default: a key that is used again meets old versions|300|300\n"
      . "shared_preload_libraries does not have the library: nothing counts how often writers collide|1|0\n"
      . 'updates do not move column ?: a stale save is not refused|300|300', 'ADV-1: many tables');

$node->stop;
done_testing();
