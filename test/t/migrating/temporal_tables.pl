# DOC-53: docs/migrating/temporal-tables.md: each price and each title that was ever written is in the history, once, and on the way
# back in the old tables.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Migration;
use Test::More;

my $page = Migration->begin('temporal-tables');
$page->run('The old way');
$page->ask(q(CREATE SEQUENCE value START 1000;
    CREATE TABLE written (id int, value text);
    INSERT INTO written VALUES (1, '10'), (1, '11'), (2, '20'), (1, 'Draft'), (1, 'A draft');
    INSERT INTO product VALUES (3, 30), (4, 40); INSERT INTO article VALUES (3, '30'), (4, '40');
    INSERT INTO written VALUES (3, '30'), (4, '40'), (3, '30'), (4, '40')));
$page->start('writer 1', \&writes_product);
$page->start('writer 2', \&writes_product);
$page->start('writer 3', \&writes_article);
$page->start('writer 4', \&writes_article);
$page->work;

$page->run('1. Record both, and import the past');
$page->work;
$page->run('3. When no reader of the old table is left');
$page->work;
$page->run('The way back');
$page->work;
$page->stop(map { "writer $_" } 1 .. 4);
is(counted(q(row_data->>'price' AS value FROM product_history WHERE operation <> 'delete'),
           q(row_data->>'title' AS value FROM article_history WHERE operation <> 'delete')), '', 'each value is in the history once');
is(counted(q(price::text AS value FROM product_past), q(price::text FROM product), q(new->>'title' FROM audit WHERE op <> 'delete')), '',
    'each value is in the old tables once');

my $versions = q(SELECT id, price, lower(sys_period) AS begun, upper(sys_period) AS ended FROM (SELECT * FROM product_past UNION ALL SELECT * FROM product) t);
is($page->ask("SELECT count(*) FROM ($versions) a JOIN ($versions) b ON a.id = b.id AND a.begun < b.begun AND (a.ended > b.begun) IS NOT FALSE"),
    0, 'no two old rows of a product are valid at one time');
is($page->ask("SELECT count(*) FROM product_past WHERE isempty(sys_period) OR sys_period IS NULL"), 0, 'each old row has a period');
is($page->ask(q(SELECT count(*) FROM product_history h WHERE changed IS DISTINCT FROM (SELECT array_agg(key ORDER BY key) FROM jsonb_each(h.before)))),
    0, 'imported entries name the columns as others do');
is($page->ask(q(SELECT count(*) FROM (SELECT operation, row_data - 'sys_period' AS now, (row_data || coalesce(before, '{}')) - 'sys_period' AS old,
    lag(row_data - 'sys_period') OVER (PARTITION BY key ORDER BY id) AS last FROM product_history) e WHERE operation = 'update' AND old <> last)), 0,
    'each entry continues the one before');
is($page->ask(q(SELECT interlock.row_as_of('product', 3, (SELECT changed_at FROM interlock.row_history('product', 3) LIMIT 1))->>'price')), 30,
    'an imported entry can be read as of its time');
is($page->ask(q(SELECT count(*) FROM interlock.history_since('product', NULL, 1000000) WHERE id IN (SELECT id FROM product_history WHERE transaction < 0))), 0,
    'readers of changes do not get imported entries');
$page->run('When no reader of the new history is left');
$page->ask('CREATE TABLE cup (id int PRIMARY KEY); CREATE TABLE cup_history (LIKE cup)');
is($page->ask(q(SELECT interlock.enable_history('cup'); SELECT count(*) FROM cup_history1)), "\n0", 'a table that has the name stays as it is');
$page->end;

# counted(SELECT...): the values that are not found exactly as often as they were written.
sub counted
{
    my $found = join(' UNION ALL ', map { "SELECT $_" } @_);
    return $page->ask("SELECT value FROM (SELECT value, 1 AS n FROM written UNION ALL SELECT value, -1 FROM ($found) f) t GROUP BY value HAVING sum(n) <> 0");
}

# Two rows that stay, and one that is inserted, changed and deleted.
sub writes_product { my ($session) = @_; writes($session, 'product', 'price'); return; }
sub writes_article { my ($session) = @_; writes($session, 'article', 'title'); return; }

sub writes
{
    my ($session, $table, $column) = @_;
    my $id = works($session, q(SELECT nextval('value')));
    write_value($session, "INSERT INTO $table (id, $column) VALUES ($id, 'VALUE')", $id);
    write_value($session, "UPDATE $table SET $column = 'VALUE' WHERE id = $_", $_) for 3 + int(rand 2), $id;
    works($session, "DELETE FROM $table WHERE id = $id");
    return;
}

sub write_value
{
    my ($session, $sql, $id) = @_;
    my $value = works($session, q(SELECT nextval('value')));
    works($session, $_) for 'BEGIN', $sql =~ s/VALUE'/$value'/r, "INSERT INTO written VALUES ($id, '$value')", 'COMMIT';
    return;
}
