-- State markers on tables that had such columns before, or that are unlike others
\set SHOW_CONTEXT never
\set VERBOSITY terse

-- holder and reason are text, byte for byte: other string types pad, cut or fold names
CREATE DOMAIN marker_person AS text;
CREATE TABLE typed (id int PRIMARY KEY, as_name name, padded char(10), one char, listed marker_person, short varchar(3), free text);
SELECT interlock.enable_marker('typed', holder_column => 'as_name');
SELECT interlock.enable_marker('typed', holder_column => 'padded');
SELECT interlock.enable_marker('typed', holder_column => 'one');
SELECT interlock.enable_marker('typed', reason_column => 'as_name');
SELECT interlock.enable_marker('typed', reason_column => 'padded');
SELECT interlock.enable_marker('typed', holder_column => 'short', reason_column => 'free');
INSERT INTO typed (id) VALUES (1);
SELECT locked, holder FROM interlock.lock_row('typed', 1, 'ann', reason => 'why');
-- an altered column is noticed before it is read
ALTER TABLE typed ALTER free TYPE name;
UPDATE typed SET padded = 'x';
SELECT * FROM interlock.row_lock('typed', 1);
DROP TABLE typed;
DROP DOMAIN marker_person;
