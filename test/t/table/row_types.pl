# Rows with values of the types of contrib, some of which have a cast to json of their own.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use RowTypes ();
use Test::More;

my $node = RowTypes::server(
    [qw(hstore citext ltree)],
    'CREATE TYPE thing AS (h hstore, name citext, hs hstore[])',
    'CREATE DOMAIN labels AS hstore CHECK (VALUE ? \'a\')',
    'CREATE TYPE words AS RANGE (subtype = citext)');

RowTypes::come_back(
    $node,
    [ 'hstore', q('a=>1, "b c"=>NULL, "d"=>"x\"y"'), q(''::hstore) ],
    [ 'hstore', q(''), q('a=>1') ],
    [ 'hstore NOT NULL', q('a=>NULL'), q('a=>"NULL"') ],
    [ 'hstore', 'NULL', q('a=>1') ],
    [ 'hstore[]', q(ARRAY['a=>1', NULL, '']::hstore[]), q('{}') ],
    [ 'hstore[]', q('[0:1]={"a=>1",NULL}'), 'NULL' ],
    [ 'labels', q('a=>1'), q('a=>2, b=>3') ],
    [ 'labels[]', q(ARRAY['a=>1']::labels[]), 'NULL' ],
    [ 'thing', q(ROW('a=>1', 'Ann', ARRAY['b=>2']::hstore[])), q(ROW(NULL, NULL, NULL)) ],
    [ 'thing[]', q(ARRAY[ROW('a=>1', 'Ann', NULL)::thing]), q('{}') ],
    [ 'citext', q('Ann'), q('ann') ],
    [ 'citext[]', q('{Ann,NULL}'), q('{ann,NULL}') ],
    [ 'words', q{'[A,B)'}, q{'[a,b)'} ],
    [ 'ltree', q('Top.Science'), q('') ],
    [ 'ltree[]', q('{Top.Science,a}'), q('{}') ],
    [ 'lquery', q('Top.*{1,2}.a|b'), 'NULL' ],
    [ 'ltxtquery', q('Top & !a*'), 'NULL' ]);

# A key of such a type.
my $sql = sub { return $node->safe_psql('postgres', join(";\n", @_)); };
$sql->(
    'CREATE TABLE tagged (tags hstore PRIMARY KEY, n int)',
    q(SELECT interlock.enable_versioning('tagged'), interlock.enable_history('tagged')),
    q(INSERT INTO tagged VALUES ('a=>1', 1)),
    q(UPDATE tagged SET n = 2));
is($sql->(q(SELECT interlock.revert_row('tagged', 'a=>1'::hstore, to_version => 1))), 3, 'HIS-50: a key is a text, too');
is($sql->(q(SELECT interlock.versioned_update('tagged', (SELECT key FROM tagged_history LIMIT 1), 3, '{"n": 5}'))), 4, 'as the history has it');

# What a client has made by to_jsonb() is not what the functions return: only the columns that are compared are read.
$sql->(
    'CREATE TABLE page (id int PRIMARY KEY, title text, note text, tags hstore)',
    q(SELECT interlock.enable_versioning('page')),
    q(INSERT INTO page VALUES (1, 'a', 'a', 'a=>1')),
    'CREATE TABLE base AS SELECT to_jsonb(page) AS row FROM page',
    q(UPDATE page SET note = 'theirs'));
is($sql->(q(SELECT m.outcome FROM base, interlock.try_versioned_update('page', 1, 0, '{"title": "mine"}', base.row, 'merge') m)),
    'merged', 'HIS-50: an hstore as an object in a base, which is not changed');
my ($status, $out, $error) = $node->psql('postgres', q(\set VERBOSITY verbose
SELECT interlock.try_versioned_update('page', 1, 0, '{"tags": "b=>1"}', row, 'merge') FROM base));
like($error, qr/22P02.*HINT: +Give the row in argument "base" as a function of pg_interlock returned it/s, 'and one that is');

# The type of a column has other attributes when the row is written back.
$sql->(
    'CREATE TYPE person AS (about jsonb, secret text, city text)',
    'CREATE TABLE visit (id int PRIMARY KEY, person person)',
    q(SELECT interlock.enable_versioning('visit'), interlock.enable_history('visit')),
    q(INSERT INTO visit VALUES (1, ROW('null', 'secret', 'Ulm'))),
    'ALTER TYPE person DROP ATTRIBUTE secret, ADD ATTRIBUTE street text',
    'UPDATE visit SET person = NULL',
    q(SELECT interlock.revert_row('visit', 1, to_version => 1)));
is($sql->('SELECT (person).city, (person).street, (person).about FROM visit'),
    'Ulm||', 'HIS-50: values come back by the names of attributes');

# Written by one session and read by another, whose settings differ.
sub in_session
{
    my ($settings, @statements) = @_;
    return $sql->((map { "SET $_" } @$settings), @statements);
}
my @dmy = ("timezone = UTC", "datestyle = 'SQL, DMY'", 'intervalstyle = sql_standard');
my @iso = ("timezone = UTC", "datestyle = 'ISO, MDY'", 'intervalstyle = postgres');
$sql->(
    'CREATE TABLE stay (id int PRIMARY KEY, days daterange, hours tstzrange, dates date[])',
    q(SELECT interlock.enable_versioning('stay'), interlock.enable_history('stay')));
in_session(\@dmy, q{INSERT INTO stay VALUES (1, '[02/03/2026,05/03/2026)', '[01/02/2026 10:00,02/02/2026 10:00)', '[0:1]={03/02/2026,04/02/2026}')});
in_session(\@iso, 'UPDATE stay SET days = NULL, hours = NULL, dates = NULL', q(SELECT interlock.revert_row('stay', 1, to_version => 1)));
is(in_session(\@iso, 'SELECT days, hours, dates FROM stay'),
    '[2026-03-02,2026-03-05)|["2026-02-01 10:00:00+00","2026-02-02 10:00:00+00")|[0:1]={2026-02-03,2026-02-04}',
    'HIS-50: ranges and arrays, under other settings');

# The type gets an attribute that prints by the settings after the session has asked how its values print.
$sql->(
    'CREATE TYPE span AS (name text)',
    'CREATE TABLE trip (id int PRIMARY KEY, span span)',
    q(SELECT interlock.enable_versioning('trip'), interlock.enable_history('trip')));
in_session(
    \@dmy, q(INSERT INTO trip VALUES (1, ROW('a'))),
    'ALTER TYPE span ADD ATTRIBUTE length interval',
    q(UPDATE trip SET span = ROW('b', '-1 day -02:03')));
in_session(\@iso, 'UPDATE trip SET span = NULL', q(SELECT interlock.revert_row('trip', 1, to_version => 2)));
is(in_session(\@iso, 'SELECT (span).length FROM trip'), '-1 days -02:03:00', 'HIS-50: an attribute that was added');

$node->stop;
done_testing();
