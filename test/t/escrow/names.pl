# ESC-51: names and keys change while changes of escrow counters wait to be added to the rows, after the transaction that made them
# and between its statements. The counters follow, or the error and the finding say the way back; whoever follows a hint loses nothing.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Protocol;
use Server;

my $node = start_server("interlock.sweeper = off\nmax_prepared_transactions = 5\n");
# Another session than the one that changes the names
my ($changes, $others) = map { Protocol::start($node) } 1, 2;
sub sql
{
    my ($sql, $session) = @_;
    $session //= $others;
    query($session, $sql);
    die "$sql: $session->{error}: $session->{message}" if defined $session->{error};
    return join("\n", map { join('|', map { $_ // '' } @$_) } @{ $session->{rows} });
}

# '', or the error with its hint.
sub error_of
{
    my ($sql, $session) = @_;
    $session //= $changes;
    query($session, $sql);
    return '' unless defined $session->{error};
    my $error = "$session->{error}: $session->{message}" . (defined $session->{hint} ? "\nHINT:  $session->{hint}" : '');
    query($session, 'ROLLBACK');
    return $error;
}

# Runs what the hint says, as somebody would who pastes it.
sub follow
{
    my ($error, $what) = @_;
    my ($hint) = $error =~ /^HINT:  (.*)$/m or return fail("$what: no hint in: $error");
    for my $statement (split /; then /, $hint) { is(error_of($statement), '', "$what: the hint runs: $statement"); }
    return;
}

sql('CREATE SCHEMA other');

sub findings { return sql("SELECT coalesce(string_agg(severity, ' ' ORDER BY severity), '') FROM interlock_internal.list_cut_off_counters()"); }

# A row of id 7, sku 70 with 10 in stock: one is taken in the row, one by a part.
sub stocked
{
    my ($key) = @_;
    sql('DROP TABLE IF EXISTS item, other.item, goods, all_items');
    sql("CREATE TABLE item (id int NOT NULL, sku int NOT NULL, stock int NOT NULL, spare int NOT NULL, note text, PRIMARY KEY ($key));
        INSERT INTO item VALUES (7, 70, 10, 500), (8, 80, 20, 600); SELECT interlock.enable_escrow('item', 'stock', 0, 1000)");
    sql("SELECT interlock.adjust('item', " . ($key eq 'id' ? '7' : q('{"id": 7, "sku": 70}'::jsonb)) . ", 'stock', -1)") for 1, 2;
    return;
}

# What changes, the statements, and how a counter is called then (default: as before). With `refused`, adjust is refused.
my @changes = (
    { what => 'the key is renamed', change => 'ALTER TABLE item RENAME id TO nr', id => 'nr', finding => 'risk' },
    { what => 'the counter is renamed', change => 'ALTER TABLE item RENAME stock TO pieces', column => 'pieces', finding => 'risk' },
    { what => 'counter and key are renamed', change => 'ALTER TABLE item RENAME stock TO pieces; ALTER TABLE item RENAME id TO nr', column => 'pieces', id => 'nr', finding => 'risk' },
    {   what => 'another column gets the name of the counter',
        change => 'ALTER TABLE item RENAME stock TO pieces; ALTER TABLE item RENAME spare TO stock',
        column => 'pieces', finding => 'risk'
    },
    {   what => 'another column gets the name of the key',
        change => 'ALTER TABLE item RENAME id TO nr; ALTER TABLE item RENAME sku TO id',
        id => 'nr', finding => 'risk'
    },
    {   what => 'counter and key exchange their names',
        change => 'ALTER TABLE item RENAME stock TO x; ALTER TABLE item RENAME id TO stock; ALTER TABLE item RENAME x TO id',
        column => 'id', id => 'stock', finding => 'risk'
    },
    { what => 'the table is renamed', change => 'ALTER TABLE item RENAME TO goods', table => 'goods' },
    { what => 'the table gets another schema', change => 'ALTER TABLE item SET SCHEMA other', table => 'other.item' },
    {   what => 'another table gets the name',
        change => 'ALTER TABLE item RENAME TO goods; CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL)',
        table => 'goods'
    },
    { what => 'the constraint of the key is renamed', change => 'ALTER TABLE item RENAME CONSTRAINT item_pkey TO main' },
    { what => 'the key is made again', change => 'ALTER TABLE item DROP CONSTRAINT item_pkey, ADD PRIMARY KEY (id)' },
    { what => 'a column of another type makes the table anew', change => 'ALTER TABLE item ALTER spare TYPE bigint' },
    { what => 'a savepoint is rolled back', change => "SAVEPOINT a; ALTER TABLE item RENAME id TO nr; ALTER TABLE item RENAME stock TO n; ROLLBACK TO a", block => 1 },
    {   what => 'a savepoint with another key is rolled back',
        change => 'SAVEPOINT a; ALTER TABLE item DROP CONSTRAINT item_pkey, ADD PRIMARY KEY (sku); ROLLBACK TO a',
        block => 1
    },
    { what => 'a savepoint that ends the counters is rolled back', change => "SAVEPOINT a; SELECT interlock.disable_escrow('item', 'stock'); ROLLBACK TO a", block => 1 },
    {   what => 'a key of two columns is turned around',
        change => 'ALTER TABLE item DROP CONSTRAINT item_pkey, ADD PRIMARY KEY (sku, id)',
        key => 'id, sku'
    },
    {   what => 'the columns of a key exchange their names',
        change => 'ALTER TABLE item RENAME id TO x; ALTER TABLE item RENAME sku TO id; ALTER TABLE item RENAME x TO sku',
        key => 'id, sku', call => q('{"id": 70, "sku": 7}'::jsonb), id => 'sku', finding => 'risk'
    },
    {   what => 'the table has another key',
        change => 'ALTER TABLE item DROP CONSTRAINT item_pkey, ADD UNIQUE (id), ADD PRIMARY KEY (sku)',
        refused => qr/55000: the key of table "item" has changed/, finding => 'broken', call => 70
    },
    {   what => 'the table has another key, and rows need not differ in the former one',
        change => 'ALTER TABLE item DROP CONSTRAINT item_pkey, ADD PRIMARY KEY (sku)',
        refused => qr/55000: the key of table "item" has changed/, finding => 'broken', call => 70, no_inserts => 1
    },
    {   what => 'the table has another key of more columns',
        change => 'ALTER TABLE item DROP CONSTRAINT item_pkey, ADD UNIQUE (id), ADD PRIMARY KEY (sku, id)',
        refused => qr/55000: the key of table "item" has changed/, finding => 'broken', call => q('{"id": 7, "sku": 70}'::jsonb)
    },
    {   what => 'the table has lost its key',
        change => 'ALTER TABLE item DROP CONSTRAINT item_pkey',
        refused => qr/55000: the key of table "item" has changed/, finding => 'broken', no_inserts => 1
    },
    {   what => 'the table has another key, and the columns of the former one other names',
        change => 'ALTER TABLE item DROP CONSTRAINT item_pkey, ADD UNIQUE (id), ADD PRIMARY KEY (sku); ALTER TABLE item RENAME id TO nr; ALTER TABLE item RENAME stock TO pieces',
        refused => qr/55000: the key of table "item" has changed/, finding => 'broken risk', call => 70, id => 'nr', column => 'pieces'
    },
    {   what => 'the table is unlogged',
        change => 'ALTER TABLE item SET UNLOGGED',
        refused => qr/55000: table "item" has become unlogged/, no_inserts => 1, back => 'ALTER TABLE item SET LOGGED'
    },
    {   what => 'the table is attached as a partition',
        change => 'CREATE TABLE all_items (LIKE item) PARTITION BY LIST (id); ALTER TABLE all_items ATTACH PARTITION item FOR VALUES IN (7, 8, 9)',
        refused => qr/55000: table "item" has become a partition/, finding => 'broken', back => 'ALTER TABLE all_items DETACH PARTITION item'
    },
    {   what => 'the triggers are off',
        change => 'ALTER TABLE item DISABLE TRIGGER zzzz_interlock_escrow_stock',
        refused => qr/55000: trigger "zzzz_interlock_escrow_stock" of table "item" does not fire/
    },
    {   what => 'the trigger has another name',
        change => 'ALTER TRIGGER zzzz_interlock_escrow_stock ON item RENAME TO a',
        refused => qr/55000: trigger "a" of table "item" does not fire after all others/, no_updates => 1, no_inserts => 1,
        back => 'ALTER TRIGGER a ON item RENAME TO zzzz_interlock_escrow_stock'
    },
    {   what => 'the trigger was replaced by one that no function makes',
        change => "CREATE OR REPLACE TRIGGER zzzz_interlock_escrow_stock BEFORE UPDATE ON item FOR EACH ROW EXECUTE FUNCTION interlock_internal.escrow_trigger('stock')",
        refused => qr/55000: column "stock" of table "item" has no escrow counters/, no_updates => qr/39P01.*DROP TRIGGER zzzz_interlock_escrow_stock ON public.item; then call interlock.enable_escrow/s, finding => 'broken',
        back => "DROP TRIGGER zzzz_interlock_escrow_stock ON item; SELECT interlock.enable_escrow('item', 'stock')"
    },
    {   what => 'the trigger was dropped',
        change => 'DROP TRIGGER zzzz_interlock_escrow_stock ON item',
        refused => qr/55000: column "stock" of table "item" has no escrow counters/, finding => 'broken',
        back => "SELECT interlock.enable_escrow('item', 'stock', 0, 1000)"
    },
);

for my $change (@changes)
{
    my ($table, $column, $id) = map { $change->{$_->[0]} // $_->[1] } [ table => 'item' ], [ column => 'stock' ], [ id => 'id' ];
    my $key = $change->{key} // 'id';
    my $before = $key eq 'id' ? 7 : q('{"id": 7, "sku": 70}'::jsonb);
    my $call = $change->{call} // $before;
    my $adjust = sub { "SELECT interlock.adjust('$table', $call, '$column', $_[0])" };
    for my $when ('after', 'within')
    {
        my $what = "$change->{what} ($when)";
        next if $change->{block} && $when eq 'after';

        # 8 with a part of -1, then -2 by parts of this transaction: 6.
        stocked($key);
        my @steps = ('BEGIN', "SELECT interlock.adjust('item', $before, 'stock', -2)", ($when eq 'after' ? 'COMMIT' : ()), $change->{change});
        push @steps, "UPDATE $table SET note = 'a'" unless $change->{no_updates};
        push @steps, 'COMMIT' if $when eq 'within';
        is(error_of(join('; ', @steps)), '', "$what: changes commit");
        is(findings(), $change->{finding} // '', "$what: a finding") unless $change->{no_finding};
        if (my $refused = $change->{refused})
        {
            my $error = error_of($adjust->(-1));
            like($error, $refused, "$what: adjust is refused");
            if (ref $change->{no_updates}) { like(error_of("UPDATE $table SET note = 'b'"), $change->{no_updates}, "$what: and updates"); }
            isnt(error_of("INSERT INTO $table VALUES (9, 90, 0, 0)"), '', "$what: new rows are refused") if $change->{no_inserts};
            if ($change->{back}) { is(error_of($change->{back}), '', "$what: the way back"); }
            else { follow($error, $what); }
        }
        is(error_of($adjust->(-1)), '', "$what: adjusts");
        is(sql("SELECT interlock.escrow_value('$table', $call, '$column')"), 5, "$what: the value");
        is(sql("SELECT sum(parts) FROM interlock.escrow WHERE rel = '$table'::regclass AND column_name = '$column'") > 0 ? 1 : 0, 1, "$what: the view has it") unless $change->{refused};
        is(error_of("SELECT interlock.fold_escrow('$table')"), '', "$what: folds");
        is(sql("SELECT string_agg(${column}::text, ' ' ORDER BY $id) FROM $table"), '5 20', "$what: into the row");
        is(error_of($adjust->(-1)), '', "$what: adjusts again");
        is(error_of("SELECT interlock.disable_escrow('$table', '$column')"), '', "$what: the counters end");
        is(sql("SELECT string_agg(${column}::text, ' ' ORDER BY $id) FROM $table"), '4 20', "$what: and the rows have all");
        is(sql("SELECT count(*) FROM interlock_internal.escrow_counter c WHERE c.rel = '$table'::regclass"), 0, "$what: nothing is left behind");

        # Straight to the end: disable_escrow folds whatever has changed.
        stocked($key);
        is(error_of(join('; ', @steps)), '', "$what: once more");
        my $error = error_of("SELECT interlock.disable_escrow('$table', '$column')");
        if ($error) { $change->{back} ? is(error_of($change->{back}), '', "$what: the way back") : follow($error, $what); }
        is(error_of("SELECT interlock.disable_escrow('$table', '$column')"), '', "$what: after that") if $error;
        is(sql("SELECT string_agg(${column}::text, ' ' ORDER BY $id) FROM $table"), '6 20', "$what: disable_escrow loses nothing");
    }
}

# What the server refuses, so that no part can be lost.
stocked('id');
like(error_of("BEGIN; SELECT interlock.adjust('item', 7, 'stock', -2); $_->[0]"), $_->[1], "$_->[0] is refused")
    for [ 'ALTER TABLE item ALTER id TYPE bigint', qr/0A000/ ], [ 'ALTER TABLE item ALTER stock TYPE bigint', qr/0A000/ ], [ 'ALTER TABLE item DROP id', qr/2BP01/ ],
    [ 'CREATE TABLE heir () INHERITS (item); ALTER TABLE item RENAME stock TO n; TRUNCATE heir; SELECT 1/0', qr/22012/ ];
is(sql("SELECT interlock.escrow_value('item', 7, 'stock')"), 8, 'and the counter is as it was');

# Another column of the former name begins with counters of its own.
sql("ALTER TABLE item RENAME stock TO pieces; ALTER TABLE item RENAME spare TO stock");
my $taken = error_of("SELECT interlock.enable_escrow('item', 'stock')");
like($taken, qr/55000: column "pieces" of table "item" was renamed, and its escrow counters still have its former name "stock"/, 'the former name is taken');
follow($taken, 'the former name is taken');
sql("SELECT interlock.enable_escrow('item', 'stock')");
sql("SELECT interlock.adjust('item', 7, '$_', -1)") for qw(stock stock pieces pieces);
is(sql("SELECT interlock.escrow_value('item', 7, 'pieces'), interlock.escrow_value('item', 7, 'stock'), interlock.fold_escrow('item'),
    (SELECT pieces || ' ' || stock FROM item WHERE id = 7)"), '6|498|2|7 499', 'two columns');
is(sql("SELECT pieces, stock FROM item WHERE id = 7"), '6|498', 'each with its own');
is(findings(), '', 'and without findings');
is(sql("SELECT interlock.configure('item', interlock.configuration('item'), dry_run => true)"), '', 'the configuration is that of the names');

# Reservations
stocked('id');
my $token = sql("SELECT token FROM interlock.reserve('item', 7, 'stock', 3, '1 h')");
my $second = sql("SELECT token FROM interlock.reserve('item', 7, 'stock', 1, '1 h')");
sql('ALTER TABLE item RENAME stock TO pieces; ALTER TABLE item RENAME id TO nr');
is(sql("SELECT column_name, amount FROM interlock.reservations WHERE token = $token"), 'pieces|3', 'reservations of a column that was renamed');
is(sql("SELECT interlock.enable_escrow('item', 'pieces'), interlock.cancel_reservation($token)"), '|t', 'are there under its new name');
is(sql("SELECT interlock.escrow_value('item', 7, 'pieces')"), 7, 'and give back');
sql('ALTER TABLE item DROP CONSTRAINT item_pkey, ADD UNIQUE (nr), ADD PRIMARY KEY (sku)');
like(error_of("SELECT interlock.enable_escrow('item', 'pieces')"), qr/55000: column "pieces" of table "item" has 1 reservation/, 'with another key they have to end first');
is(sql("SELECT interlock.cancel_reservation($second)"), 't', 'which they can');
is(error_of("SELECT interlock.enable_escrow('item', 'pieces')"), '', 'then it is enabled');
is(sql("SELECT interlock.escrow_value('item', 70, 'pieces')"), 8, 'by the other key, with all');

# A prepared transaction
stocked('id');
sql("BEGIN; SELECT interlock.adjust('item', 7, 'stock', -2); ALTER TABLE item RENAME id TO nr; PREPARE TRANSACTION 'renames'");
sql("COMMIT PREPARED 'renames'");
is(sql("SELECT interlock.escrow_value('item', 7, 'stock'), interlock.fold_escrow('item'), (SELECT stock FROM item WHERE nr = 7)"), '6|1|9', 'a prepared transaction renames');

# A dump has the former names.
stocked('id');
sql('ALTER TABLE item RENAME stock TO pieces');
my $dump = $node->basedir . '/renamed.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('postgres') ], 'a dump');
$node->safe_psql('postgres', 'CREATE DATABASE copy');
$node->command_ok([ 'psql', '-qX', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('copy'), '-f', $dump ], 'is restored');
my $copy = Protocol::start($node, 'copy');
like(error_of("UPDATE item SET note = 'c'", $copy),
    qr/55000: column "stock" of table "item", which has escrow counters, is gone or has another type.*Rename it back, and call interlock.enable_escrow/s, 'the copy says what it lacks');
is(sql('SELECT severity FROM interlock_internal.list_cut_off_counters()', $copy), 'broken', 'which is a finding');
sql("ALTER TABLE item RENAME pieces TO stock; SELECT interlock.enable_escrow('item', 'stock'); ALTER TABLE item RENAME stock TO pieces", $copy);
is(sql("SELECT interlock.adjust('item', 7, 'pieces', -1)", $copy), 7, 'and loses nothing on the way back');

done_testing();
