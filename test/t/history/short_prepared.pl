# HIS-67: nobody knows when a prepared transaction began. Trimming deletes no entry on which one may have built.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
max_prepared_transactions = 5
interlock.sweeper = off
));
$node->start;

sub sql { return $node->safe_psql('postgres', $_[0]); }

sql(q(
    CREATE EXTENSION pg_interlock;
    CREATE TABLE doc (id int PRIMARY KEY, a int, b text);
    SELECT interlock.enable_history('doc', keep_for => '1 hour', whole_every => 4);
    INSERT INTO doc VALUES (1, 1, 'b');
));
sql("BEGIN; UPDATE doc SET a = 2; PREPARE TRANSACTION 'p';");
sql("UPDATE doc_history SET changed_at = now() - interval '3 hours'");
is(sql("SELECT trimmed FROM interlock.trim_history('doc')"), 0, 'HIS-67: not while the transaction is prepared');
sql("COMMIT PREPARED 'p'");
is(sql("SELECT interlock.row_as_of('doc', 1, clock_timestamp())"), '{"a": 2, "b": "b", "id": 1}', 'HIS-67: its entry is read');
is(sql("SELECT trimmed FROM interlock.trim_history('doc')"), 1, 'HIS-67: afterwards');
is(sql('SELECT builds_on IS NULL, row_data FROM doc_history'), 't|{"a": 2, "b": "b", "id": 1}', 'HIS-67: its entry is whole then');
$node->stop;
done_testing();
