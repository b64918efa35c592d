# A role whose triggers take long, at many tables and counters, has its share of the sweeper's time: markers and counters of others have
# their turn before all of its own.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $tables = 60;
my $node = start_server('interlock.sweeper = off');
$node->safe_psql('postgres', qq(
CREATE ROLE mallory; CREATE ROLE shop;
CREATE SCHEMA m AUTHORIZATION mallory;
CREATE SCHEMA s AUTHORIZATION shop;
SET SESSION AUTHORIZATION mallory;
CREATE FUNCTION m.slow() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN PERFORM pg_sleep(0.25); RETURN NEW; END \$\$;
DO \$\$ BEGIN FOR i IN 1 .. $tables LOOP
    EXECUTE format('CREATE TABLE m.marked_%s (id int PRIMARY KEY)', i);
    EXECUTE format('INSERT INTO m.marked_%s VALUES (1)', i);
    PERFORM interlock.enable_marker('m.marked_' || i), interlock.lock_row('m.marked_' || i, 1, 'mallory', '1 ms');
    EXECUTE format('CREATE TRIGGER slow BEFORE UPDATE ON m.marked_%s FOR EACH ROW EXECUTE FUNCTION m.slow()', i);
END LOOP; END \$\$;
CREATE TABLE m.stock (id int PRIMARY KEY, stock int NOT NULL);
INSERT INTO m.stock SELECT i, 9 FROM generate_series(1, $tables) i;
SELECT interlock.enable_escrow('m.stock', 'stock');
SELECT count(interlock.adjust('m.stock', i, 'stock', -1)) FROM generate_series(1, $tables) i;
SELECT count(interlock.adjust('m.stock', i, 'stock', -1)) FROM generate_series(1, $tables) i;
CREATE TRIGGER slow BEFORE UPDATE ON m.stock FOR EACH ROW EXECUTE FUNCTION m.slow();
SET SESSION AUTHORIZATION shop;
CREATE TABLE s.marked (id int PRIMARY KEY);
INSERT INTO s.marked VALUES (1);
SELECT interlock.enable_marker('s.marked'), interlock.lock_row('s.marked', 1, 'anna', '1 ms');
CREATE TABLE s.stock (id int PRIMARY KEY, stock int NOT NULL);
INSERT INTO s.stock VALUES (1, 9);
SELECT interlock.enable_escrow('s.stock', 'stock');
SELECT interlock.adjust('s.stock', 1, 'stock', -1); -- in the row
SELECT interlock.adjust('s.stock', 1, 'stock', -1); -- a part
));
is($node->safe_psql('postgres', 'SELECT count(*) FROM interlock.escrow WHERE parts > 0'), $tables + 1, 'counters that have parts');

my $held = join(' + ', map { "(SELECT lock_status FROM m.marked_$_)" } 1 .. $tables);
$node->append_conf('postgresql.conf', "interlock.sweeper = on\ninterlock.sweeper_rescan = '1s'");
$node->reload;
ok($node->poll_query_until('postgres', 'SELECT lock_status = 0 FROM s.marked'), 'the marker of another role is released');
my $left = $node->safe_psql('postgres', "SELECT $held");
cmp_ok($left, '>', $tables / 2, "while most of the role's with the slow triggers are held");
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock.escrow WHERE rel = \'s.stock\'::regclass AND parts > 0'), 'the counter of another role is folded');
$left = $node->safe_psql('postgres', "SELECT count(*) FROM interlock.escrow WHERE rel = 'm.stock'::regclass AND parts > 0");
cmp_ok($left, '>', $tables / 2, 'while most of the other counters have parts');
ok($node->poll_query_until('postgres', "SELECT $held = 0"), 'in the end all markers are released');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock.escrow WHERE parts > 0'), 'and all counters folded');
$node->stop;
done_testing();
