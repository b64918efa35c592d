# A role whose triggers take long, at many counters, has its share of the sweeper's time: counters of others have their turn before all of
# its own.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $counters = 200;
my $node = start_server('interlock.sweeper = off');
$node->safe_psql('postgres', qq(
CREATE ROLE mallory; CREATE ROLE shop;
CREATE SCHEMA m AUTHORIZATION mallory;
CREATE SCHEMA s AUTHORIZATION shop;
SET SESSION AUTHORIZATION mallory;
CREATE FUNCTION m.slow() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN PERFORM pg_sleep(0.25); RETURN NEW; END \$\$;
CREATE TABLE m.stock (id int PRIMARY KEY, stock int NOT NULL);
INSERT INTO m.stock SELECT i, 9 FROM generate_series(1, $counters) i;
SELECT interlock.enable_escrow('m.stock', 'stock');
SELECT count(interlock.adjust('m.stock', i, 'stock', -1)) FROM generate_series(1, $counters) i;
SELECT count(interlock.adjust('m.stock', i, 'stock', -1)) FROM generate_series(1, $counters) i;
CREATE TRIGGER slow BEFORE UPDATE ON m.stock FOR EACH ROW EXECUTE FUNCTION m.slow();
SET SESSION AUTHORIZATION shop;
CREATE TABLE s.stock (id int PRIMARY KEY, stock int NOT NULL);
INSERT INTO s.stock VALUES (1, 9);
SELECT interlock.enable_escrow('s.stock', 'stock');
SELECT interlock.adjust('s.stock', 1, 'stock', -1); -- in the row
SELECT interlock.adjust('s.stock', 1, 'stock', -1); -- a part
));
is($node->safe_psql('postgres', 'SELECT count(*) FROM interlock.escrow WHERE parts > 0'), $counters + 1, 'counters that have parts');

$node->append_conf('postgresql.conf', "interlock.sweeper = on\ninterlock.sweeper_rescan = '1s'");
$node->reload;
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock.escrow WHERE rel = \'s.stock\'::regclass AND parts > 0'), 'the counter of another role is folded');
my $left = $node->safe_psql('postgres', "SELECT count(*) FROM interlock.escrow WHERE rel = 'm.stock'::regclass AND parts > 0");
cmp_ok($left, '>', 0.9 * $counters, 'while most of the other counters have parts');
$node->safe_psql('postgres', 'ALTER TABLE m.stock DISABLE TRIGGER slow');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock.escrow WHERE parts > 0'), 'in the end all are folded');
$node->stop;
done_testing();
