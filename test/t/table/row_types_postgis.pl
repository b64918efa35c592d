# Rows with values of PostGIS: its casts to json lose the coordinates, dimensions and curves that GeoJSON does not have.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use RowTypes ();
use Test::More;

my $node = RowTypes::server([qw(postgis)], 'CREATE TYPE place AS (name text, at geometry)', 'CREATE DOMAIN spot AS geometry(Point)');

RowTypes::come_back(
    $node,
    [ 'geometry', q('POINT M (1 2 77)'), q('POINT(1 2)') ],
    [ 'geometry', q('SRID=4326;POINT ZM (1 2 3 4)'), q('SRID=3857;POINT ZM (1 2 3 4)') ],
    [ 'geometry', q('CIRCULARSTRING(0 0, 1 1, 2 0)'), 'NULL' ],
    [ 'geometry', q('POINT(0.1 1e-300)'), 'NULL' ],
    [ 'geometry(Point, 4326)', q('SRID=4326;POINT(1 2)'), q('SRID=4326;POINT EMPTY') ],
    [ 'geometry', q('POLYHEDRALSURFACE Z (((0 0 0, 0 1 0, 1 1 0, 0 0 0)))'), q('GEOMETRYCOLLECTION EMPTY') ],
    [ 'geography', q('SRID=4326;LINESTRING(1 2, 3 4)'), q('POINT(1 2)') ],
    [ 'geometry[]', q(ARRAY['POINT M (1 2 77)'::geometry, NULL]), q('{}') ],
    [ 'place', q(ROW('x', 'POINT M (1 2 77)')), 'NULL' ],
    [ 'spot', q('POINT(1 2)'), 'NULL' ],
    [ 'box2d', q('BOX(1 2,3 4)'), 'NULL' ],
    [ 'box3d', q('BOX3D(1 2 3,4 5 6)'), 'NULL' ]);

# A client may give GeoJSON.
my $sql = sub { return $node->safe_psql('postgres', join(";\n", @_)); };
$sql->(
    'CREATE TABLE place_of (id int PRIMARY KEY, at geometry)',
    q(SELECT interlock.enable_versioning('place_of')),
    q(INSERT INTO place_of VALUES (1, 'POINT(1 2)')));
is($sql->(q(SELECT interlock.versioned_update('place_of', 1, 1, '{"at": {"type": "Point", "coordinates": [3, 4]}}'))), 2, 'an object is read');
is($sql->('SELECT ST_AsText(at) FROM place_of'), 'POINT(3 4)', 'as the type reads it');

$node->stop;
done_testing();
