# The write log: lines go when they are old, and a line is there exactly as often as its statement.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'\ninterlock.sweeper_rescan = 1\ninterlock.write_log_keep = 3600");
$node->start;

sub sql { return $node->safe_psql('postgres', $_[0]); }

sql(q(
    CREATE EXTENSION pg_interlock;
    CREATE TABLE doc (id int PRIMARY KEY, note text, owned int);
    SELECT interlock.enable_history('doc'), interlock.own_columns('doc', 'w', '{owned}', 'skip');
    INSERT INTO doc SELECT g FROM generate_series(1, 1000) g;
));

# Many statements in one transaction, some in savepoints that are rolled back: none twice, none missing
sql(q(DO $$
BEGIN
    PERFORM interlock.suppress_history('doc', 'many');
    FOR i IN 1..300 LOOP
        UPDATE doc SET note = i WHERE id = i;
        BEGIN
            UPDATE doc SET note = 'no' WHERE id = 1000 - i;
            IF i % 2 = 0 THEN
                RAISE EXCEPTION 'back';
            END IF;
        EXCEPTION WHEN raise_exception THEN
            NULL;
        END;
    END LOOP;
    UPDATE doc SET note = 'all', owned = 7;
END $$));
is(sql("SELECT count(*), sum(row_count), count(key) FROM interlock.operation_log"), '451|1450|450', 'a line for each statement that was kept');
is(sql("SELECT row_count, owner, stored, given FROM interlock.skipped_writes"), '1000|w|{"owned": null}|{"owned": 7}', 'and one for what was skipped');

# Two hours later
sql("UPDATE interlock.write_log SET written_at = written_at - interval '2 hours' WHERE id <= 200");
$node->poll_query_until('postgres', "INSERT INTO doc SELECT max(id) + 1 FROM doc; SELECT count(*) = 252 FROM interlock.write_log", "INSERT 0 1\nt");
is(sql('SELECT count(*), min(id) FROM interlock.write_log'), '252|201', 'old lines are deleted, the others stay');
is(sql("SELECT last_error FROM interlock.sweeper WHERE database = 'postgres'"), '', 'and nothing went wrong');

# The transaction that drops the extension has lines to write, and no table
sql("BEGIN; UPDATE doc SET owned = 8 WHERE id = 1; SET client_min_messages = error; DROP EXTENSION pg_interlock CASCADE; COMMIT;");
is(sql("SELECT count(*) FROM pg_extension WHERE extname = 'pg_interlock'"), 0, 'dropped in a transaction that has lines to write');
$node->stop;
done_testing();
