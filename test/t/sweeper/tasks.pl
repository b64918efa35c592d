# More tables than are left out, whose triggers catch every cancel and so end the workers that sweep their markers: the other tasks have
# their turn.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server('interlock.sweeper = off');
$node->safe_psql('postgres', q(
    CREATE FUNCTION stubborn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$;
    DO $$ BEGIN FOR i IN 1 .. 40 LOOP
        EXECUTE format('CREATE TABLE marked_%s (id int PRIMARY KEY)', i);
        EXECUTE format('INSERT INTO marked_%s VALUES (1)', i);
        PERFORM interlock.enable_marker(format('marked_%s', i)::regclass), interlock.lock_row(format('marked_%s', i)::regclass, 1, 'anna', '1 ms');
        EXECUTE format('CREATE TRIGGER stubborn BEFORE UPDATE ON marked_%s FOR EACH ROW EXECUTE FUNCTION stubborn()', i);
    END LOOP; END $$;
    CREATE TABLE recorded (id int PRIMARY KEY);
    SELECT interlock.enable_history('recorded', keep_for => '1 ms');
    INSERT INTO recorded VALUES (1);
    UPDATE recorded_history SET changed_at = changed_at - interval '1 day';
    CREATE TABLE folded (id int PRIMARY KEY, stock int NOT NULL);
    INSERT INTO folded VALUES (1, 9);
    SELECT interlock.enable_escrow('folded', 'stock');
    SELECT interlock.adjust('folded', 1, 'stock', -1)));
$node->safe_psql('postgres', q(SELECT interlock.adjust('folded', 1, 'stock', -1))); # a part
is($node->safe_psql('postgres', 'SELECT stock FROM folded'), 8, 'a part waits');

$node->append_conf('postgresql.conf', 'interlock.sweeper = on');
$node->restart;
$node->wait_for_log(qr/a sweeper worker ended itself/);
ok($node->poll_query_until('postgres', "SELECT $_->[0]"), $_->[1])
    for ['stock = 7 FROM folded', 'it is folded'], ['count(*) = 0 FROM recorded_history', 'a history is trimmed'];

$node->stop('immediate');
done_testing();
