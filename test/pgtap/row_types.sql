-- HIS-50: a row that becomes json and comes back is the same row, whatever the types of its columns are.
BEGIN;
SET LOCAL client_min_messages = error;
\i test/helpers/row_types.sql

CREATE TYPE mood AS ENUM ('sad', 'high');
CREATE TYPE pair AS (x int, y text);
CREATE TYPE nest AS (p pair, ps pair[], a int[], n numeric, f float8, j jsonb, at timestamptz, d date);
CREATE TYPE nothing AS ();
CREATE TYPE odd AS (j json, k json);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN given AS text NOT NULL;
CREATE DOMAIN ints AS int[];
CREATE DOMAIN pairs AS pair[];
CREATE DOMAIN doc AS jsonb CHECK (jsonb_typeof(VALUE) = 'object');
CREATE TYPE floats AS RANGE (subtype = float8);
-- types with a cast to json of their own: one that loses, and one that raises
CREATE TYPE colour AS ENUM ('red', 'green');
CREATE FUNCTION as_colour(colour) RETURNS json LANGUAGE sql AS $$SELECT '{"colour": "some"}'::json$$;
CREATE CAST (colour AS json) WITH FUNCTION as_colour(colour);
CREATE TYPE secret AS (a int, b text);
CREATE FUNCTION as_secret(secret) RETURNS json LANGUAGE plpgsql AS $$BEGIN RAISE 'no json'; END$$;
CREATE CAST (secret AS json) WITH FUNCTION as_secret(secret);
CREATE TYPE raw AS RANGE (subtype = int);
CREATE FUNCTION as_raw(raw) RETURNS json LANGUAGE plpgsql AS $$BEGIN RAISE 'no json'; END$$;
CREATE CAST (raw AS json) WITH FUNCTION as_raw(raw);
CREATE DOMAIN raws AS raw[];
CREATE TYPE painted AS (c colour, r raw, cs colour[]);

-- the value, and another one; a null for other
CREATE TABLE kinds (id serial, type text, value text, other text, same text DEFAULT 'record_image_eq(ROW(k.v), ROW(o.v))');
INSERT INTO kinds (type, value, other) VALUES
    ('boolean', 'true', 'NULL'), ('smallint', '-32768', '1'), ('int', '2147483647', '1'), ('bigint', '-9223372036854775808', '1'),
    ('numeric', '12345678901234567890.123456789000', '0'), ('numeric', $$'NaN'$$, '0'), ('numeric', $$'-Infinity'$$, $$'NaN'$$), ('numeric', '1e-200', '1e200'), ('numeric(10, 2)', '1.50', '2'), ('numeric(3, -2)', '12300', '0'),
    ('real', '0.1', '1'), ('real', $$'NaN'$$, '1'), ('real', '1e-45', '3.4028235e38'), ('double precision', '0.1', '1'), ('double precision', $$'-Infinity'$$, $$'NaN'$$), ('double precision', '5e-324', '1.7976931348623157e308'),
    ('double precision', $$'-0'$$, '1'), ('real', $$'-0'$$, '1'), ('double precision', '1.7976931348623157e308', '0'),
    ('text', $$E'a "b" \\ \u00fc \n'$$, $$''$$), ('text', $$repeat('long ', 20000)$$, $$'x'$$), ('varchar(20)', $$'v'$$, $$''$$), ('char(8)', $$'c'$$, $$'d'$$), ('"char"', $$'x'$$, $$'y'$$), ('"char"', $$''$$, $$'y'$$), ('name', $$'some name'$$, $$''$$),
    ('bytea', $$'\x00ff275c'$$, $$''$$), ('uuid', $$'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'$$, 'NULL'), ('mood', $$'high'$$, $$'sad'$$),
    ('date', $$'2024-02-29'$$, $$'infinity'$$), ('date', $$'-infinity'$$, $$'0044-03-15 BC'$$), ('date', $$'0044-03-15 BC'$$, $$'5874897-12-31'$$), ('date', $$'5874897-12-31'$$, $$'2024-01-01'$$),
    ('timestamp', $$'2024-02-29 12:34:56.123456'$$, $$'infinity'$$), ('timestamp', $$'-infinity'$$, $$'0044-03-15 BC'$$), ('timestamp', $$'4713-01-01 00:00:00 BC'$$, $$'294276-12-31 23:59:59.999999'$$), ('timestamp(0)', $$'2024-02-29 12:34:56'$$, 'NULL'),
    ('timestamptz', $$'2024-02-29 12:34:56.123456+05:30'$$, $$'infinity'$$), ('timestamptz', $$'1883-11-18 00:00:00.5 America/New_York'$$, $$'-infinity'$$), ('timestamptz', $$'20240-02-29 12:34:56.123456+05:30'$$, $$'0044-03-15 BC'$$),
    ('time', $$'24:00'$$, $$'00:00:00.000001'$$), ('timetz', $$'12:34:56.789-05:30'$$, $$'12:34+05:30:15'$$), ('timetz', $$'12:34:56+05:30:15'$$, 'NULL'),
    ('interval', $$'-1 year -2 mons +3 days -04:05:06.789'$$, $$'0'$$), ('interval', $$'30 days'$$, $$'1 mon'$$), ('interval', $$'-1 day 02:03'$$, $$'1 day -02:03'$$), ('interval day to second', $$'1 day 02:03'$$, 'NULL'),
    ('money', $$1234.5::numeric::money$$, $$(-1)::money$$), ('money', '(-1.05)::numeric::money', '0::money'), ('money[]', 'ARRAY[1::money, (-2)::money]', 'NULL'),
    ('inet', $$'10.0.0.1/8'$$, $$'::1'$$), ('cidr', $$'10.0.0.0/8'$$, $$'::/0'$$), ('macaddr', $$'08:00:2b:01:02:03'$$, 'NULL'), ('macaddr8', $$'08:00:2b:01:02:03:04:05'$$, 'NULL'),
    ('bit(3)', $$B'101'$$, $$B'000'$$), ('varbit', $$B''$$, $$B'1'$$), ('oid', '4294967295', '0'), ('xid', $$'7'$$, 'NULL'), ('xid8', $$'7'$$, 'NULL'), ('pg_lsn', $$'16/B374D848'$$, 'NULL'), ('tid', $$'(1,2)'$$, 'NULL'),
    ('point', $$'(0.1,-1e300)'$$, $$'(0,0)'$$), ('line', $$'{1,2,3}'$$, 'NULL'), ('lseg', $$'[(0,0),(1,1)]'$$, 'NULL'), ('box', $$'(1,1),(0,0)'$$, 'NULL'), ('path', $$'[(0,0),(1,1)]'$$, $$'((0,0),(1,1))'$$), ('polygon', $$'((0,0),(1,1),(2,0))'$$, 'NULL'), ('circle', $$'<(0,0),2>'$$, 'NULL'),
    ('tsvector', $$'a:1A ''b c'':2'$$, $$''$$), ('tsquery', $$'a & !b:*'$$, $$''$$), ('jsonpath', $$'$.a[*] ? (@ > 1)'$$, $$'$'$$), ('pg_snapshot', $$'10:20:10,14'$$, 'NULL'),
    ('jsonb', $$'{"b": [1, {"c": null}], "a": 1.00}'$$, $$'[]'$$), ('jsonb', $$'"scalar"'$$, $$'"1"'$$), ('jsonb', $$'17.0'$$, $$'"17.0"'$$), ('jsonb', $$'[]'$$, $$'{}'$$), ('jsonb', $$'false'$$, 'NULL'), ('jsonb', 'NULL', $$'1'$$),
    ('jsonb NOT NULL', $$'null'$$, $$'1'$$), ('doc', $$'{"a": 1}'$$, $$'{}'$$), ('doc', 'NULL', $$'{}'$$),
    ('json', $$'{"a": 1, "b": [true, "x"]}'$$, $$'[]'$$), ('json NOT NULL', $$'null'$$, $$'1'$$), ('json', $$'"[1]"'$$, $$'[1]'$$),
    ('json', $$'{"a": "\u0000"}'$$, $$'[]'$$), ('json', $$'{"a": 1e1000000, "a": "\ud800"}'$$, $$'[]'$$),
    ('int[]', $$'{1,NULL,3}'$$, $$'{}'$$), ('int[]', $$'{}'$$, $$'{NULL}'$$), ('int[]', $$'{{1,2},{3,NULL}}'$$, $$'{1}'$$), ('int[]', $$'[0:2]={1,2,3}'$$, $$'{1,2,3}'$$), ('int[]', $$'{1,2,3}'$$, $$'[0:2]={1,2,3}'$$), ('int[]', $$'[2:3][-1:0]={{1,2},{3,4}}'$$, 'NULL'),
    ('text[]', $$'{a,"b \"c\"",NULL,"NULL","","\\"}'$$, $$'{}'$$), ('int2vector', $$'1 2'$$, $$''$$), ('oidvector', $$'1 2'$$, $$''$$), ('numeric[]', $$'{1.00,NaN,Infinity}'$$, $$'{}'$$), ('float8[]', $$'{-0,NaN,0.1}'$$, $$'{}'$$), ('timestamptz[]', $$'{infinity,2024-01-01 00:00:00+01}'$$, $$'{}'$$),
    ('bytea[]', $$'{"\\x00ff"}'$$, $$'{}'$$), ('jsonb[]', $$ARRAY['[1, 2]', '[3]', 'null', '{"a": 1}', '"s"']::jsonb[]$$, $$'{}'$$), ('json[]', $$ARRAY['[1, 2 ]', '"\u0000"']::json[]$$, $$'{}'$$), ('interval[]', $$'{1 mon,-1 day}'$$, $$'{}'$$), ('ints[]', $$'{"{1,2}","{3}",NULL}'$$, $$'{}'$$),
    ('pair', $$'(1,x)'$$, $$'(1,y)'$$), ('pair', $$'(,)'$$, 'NULL'), ('pair', 'NULL', $$'(,)'$$), ('nothing', 'ROW()', 'NULL'), ('pair[]', $$'{"(1,x)",NULL,"(,)"}'$$, $$'{}'$$), ('pairs', $$'[0:1]={"(1,x)",NULL}'$$, $$'{}'$$),
    ('nest', $$ROW(ROW(1, 'x'), ARRAY[ROW(2, 'y')::pair, NULL], '[0:0]={1}', 1.00, '-0', '{"a": [null]}', '2024-01-01 00:00:00+01', 'infinity')$$, 'NULL'), ('nest[]', $$ARRAY[ROW(NULL, NULL, NULL, 'NaN', 'NaN', '[]', 'infinity', NULL)::nest]$$, $$'{}'$$),
    ('odd', $$ROW('[1]', '"s"')$$, $$ROW('[1]', '"[1]"')$$), ('odd[]', $$ARRAY[ROW('{}', '"s"')::odd, ROW('[1]', NULL)::odd]$$, 'NULL'),
    ('positive', '1', '2'), ('given', $$'x'$$, $$''$$), ('ints', $$'[5:5]={1}'$$, $$'{}'$$), ('positive[]', $$'{1,2}'$$, $$'{}'$$),
    ('int4range', $$'[1,5)'$$, $$'empty'$$), ('int4range', $$'empty'$$, $$'(,)'$$), ('numrange', $$'[1.00,)'$$, $$'[1.0,)'$$), ('daterange', $$'[2024-02-01,2024-03-01)'$$, 'NULL'), ('tstzrange', $$'["2024-01-01 00:00:00+01",infinity]'$$, 'NULL'), ('tsrange', $$'("0044-01-01 BC",)'$$, 'NULL'),
    ('floats', $$'[0.1,NaN]'$$, 'NULL'), ('int4multirange', $$'{[1,2),[5,)}'$$, $$'{}'$$), ('datemultirange', $$'{[2024-02-01,2024-03-01)}'$$, 'NULL'), ('daterange[]', $$'{"[2024-02-01,2024-03-01)"}'$$, 'NULL'),
    ('regclass', $$'pg_class'$$, $$'pg_type'$$), ('regclass', $$'kinds'$$, $$'0'$$), ('regtype', $$'pair'$$, $$'int'$$), ('regproc', $$'now'$$, 'NULL'), ('regprocedure', $$'fate(text,text,text,text)'$$, 'NULL'), ('regoperator', $$'+(int,int)'$$, 'NULL'), ('regconfig', $$'simple'$$, 'NULL'), ('regrole', 'current_user::regrole', 'NULL'), ('regclass[]', $$'{kinds,pg_class}'$$, 'NULL'),
    ('colour', $$'red'$$, $$'green'$$), ('colour[]', $$'{red,green}'$$, $$'{}'$$), ('secret', $$'(1,x)'$$, 'NULL'), ('raw', $$'[1,5)'$$, 'NULL'), ('raws', $$'{"[1,5)",empty}'$$, 'NULL'), ('painted', $$ROW('red', '[1,2)', '{green}')$$, 'NULL');

UPDATE kinds SET same = 'k.v::text = o.v::text' WHERE (type LIKE 'json%' OR type LIKE 'odd%') AND type NOT LIKE 'jsonb%';
-- JSON null in a field of a row is NULL when the row is written back, as in a column that may be NULL.
INSERT INTO kinds (type, value, other, same) VALUES ('nest', $$ROW(NULL, NULL, NULL, NULL, NULL, 'null', NULL, NULL)$$, $$ROW(NULL, NULL, NULL, NULL, NULL, '[]', NULL, NULL)$$,
    $$coalesce((k.v).j, 'null') = 'null' AND (o.v).j = 'null'$$);
-- json without its blanks and in the order of jsonb
INSERT INTO kinds (type, value, other, same) VALUES ('json', $$'{"b": 1, "a": [ 1.0 ]}'$$, $$'[]'$$, 'k.v::jsonb = o.v::jsonb');

SELECT plan(count(*)::int * 2) FROM kinds;
SELECT is(fate(type, value, other, same), '{}', format('HIS-50: %s %s', type, left(value, 40))) FROM kinds ORDER BY id;

-- Settings that print otherwise.
SET LOCAL datestyle = 'SQL, DMY';
SET LOCAL intervalstyle = sql_standard;
SET LOCAL extra_float_digits = -5;
SET LOCAL bytea_output = escape;
SET LOCAL timezone = 'America/St_Johns';
SELECT is(fate(type, value, other, same), '{}', format('HIS-50: %s %s, printed otherwise', type, left(value, 40))) FROM kinds ORDER BY id;
RESET datestyle;
RESET intervalstyle;
RESET extra_float_digits;
RESET bytea_output;
RESET timezone;

ROLLBACK;
