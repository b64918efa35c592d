# Escrow counters: a prepared transaction has one note for each counter, and a note may outlive the commit log.
# docs/internals/escrow.md has the rules (E1 ...).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Server;

# Room for 32 notes.
my $node = start_server(q(
interlock.sweeper = off
autovacuum = off
max_prepared_transactions = 10
interlock.max_escrow_counters = 16
));
sub sql { return $node->safe_psql('postgres', $_[0]); }
sub try_adjust { return sql("SELECT outcome, remaining FROM interlock.try_adjust('item', $_[0], 'stock', $_[1])"); }
sub remaining { return sql("SELECT trim_scale(remaining) FROM interlock.escrow WHERE key = '{$_[0]}'"); }
sub adjusts { my ($count, $delta) = @_; return "SELECT count(interlock.adjust('item', 1, 'stock', $delta)) FROM generate_series(1, $count)"; }

sql(q(
CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL);
INSERT INTO item VALUES (1, 1000), (2, 10);
SELECT interlock.enable_escrow('item', 'stock', maximum => 2000);
SELECT interlock.adjust('item', id, 'stock', d) FROM item, (VALUES (-1), (1)) v (d);
));

# --- Many calls of one transaction ------------------------------------------------------------------------------------------

sql('BEGIN; ' . adjusts(100, -1) . '; SAVEPOINT a; ' . adjusts(200, -2) . '; ROLLBACK TO a; ' . adjusts(100, 1) . '; '
    . 'SAVEPOINT b; ' . adjusts(300, -1) . '; RELEASE b; COMMIT');
is(remaining(1), 700, 'a commit of many calls and savepoints is exact');
sql('BEGIN; ' . adjusts(200, -1) . '; SAVEPOINT a; ' . adjusts(200, 1) . '; ROLLBACK');
is(remaining(1), 700, 'so is a rollback');
is(sql("SELECT trim_scale(undecided) FROM interlock.escrow WHERE key = '{1}'"), 0, 'and nothing is left undecided');

sql('BEGIN; ' . adjusts(100, -1) . "; PREPARE TRANSACTION 'many'");
is(remaining(1), 600, 'a prepared transaction of 100 calls needs one note (E5)');
$node->stop('immediate');
$node->start;
is(try_adjust(1, -1), 'adjusted|599', 'after a crash');
is(remaining(1), 599, 'and its counter has an entry again (E6)');
sql("ROLLBACK PREPARED 'many'");
is(try_adjust(1, -699), 'adjusted|0', 'which is exact once it is decided');

# --- A note that is older than the commit log -------------------------------------------------------------------------------

is(try_adjust(2, 0 - 10), 'adjusted|0', 'sold');
sql("BEGIN; SELECT interlock.adjust('item', 2, 'stock', 4); PREPARE TRANSACTION 'return'");
sql("COMMIT PREPARED 'return'"); # nobody asks for its end
my $file = $node->data_dir . '/pg_xact/0000';
ok(-e $file, 'the commit log has it');

# A segment of the commit log has 1,048,576 transactions.
sql(q(CREATE UNLOGGED TABLE used ();
DO $$ BEGIN
    FOR i IN 1 .. 1100000 LOOP
        BEGIN INSERT INTO used DEFAULT VALUES; EXCEPTION WHEN division_by_zero THEN NULL; END;
        IF i % 10000 = 0 THEN COMMIT; END IF;
    END LOOP;
END $$;
DROP TABLE used));
sql('ALTER DATABASE template0 ALLOW_CONNECTIONS true');
for my $database ('template0', 'template1', 'postgres') { $node->safe_psql($database, 'VACUUM FREEZE'); }
ok(!-e $file, 'the commit log has forgotten it');
is(try_adjust(2, -4), 'adjusted|0', 'what it returned is there: the counter is loaded again');
is(remaining(2), 0, 'into memory');

$node->stop;
done_testing();
