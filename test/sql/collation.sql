-- Keys and holders of a collation for which different texts are equal, with and without a statement. It needs a server
-- with ICU; collation_1.out is for those without.
SELECT count(*) = 0 AS no_icu FROM pg_collation WHERE collprovider = 'i' \gset
\if :no_icu
\quit
\endif
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE COLLATION careless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
-- how the function ran
CREATE FUNCTION log_how() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE context text;
BEGIN
    GET DIAGNOSTICS context = PG_CONTEXT;
    RAISE INFO '%', CASE WHEN context ~ 'SQL statement "UPDATE .* AS t SET' THEN 'by a statement' ELSE 'directly' END;
    RETURN NEW;
END $$;
-- a row that is read by a statement leaves its plan
CREATE FUNCTION kept_plans() RETURNS bigint LANGUAGE sql AS
    'SELECT count(*) FROM pg_backend_memory_contexts WHERE ident LIKE ''SELECT % public.'' || ''page%''';

-- the row's own key is what is returned, and only its own holder gives a marker back
CREATE TABLE page (title text COLLATE careless PRIMARY KEY, a int, lock_by text COLLATE careless);
SELECT interlock.enable_versioning('page'), interlock.enable_marker('page', status_column => 'lock_status');
CREATE TRIGGER first BEFORE UPDATE ON page FOR EACH ROW EXECUTE FUNCTION log_how();
INSERT INTO page VALUES ('one', 1), ('two', 2), ('three', 3);
SELECT interlock.versioned_update('page', 'ONE'::text, 1, '{"a": 7}');
SELECT string_agg(key::text, ' '), kept_plans() > 0 AS by_a_statement FROM interlock.select_for_update('page', '{TWO,One}');
SELECT interlock.lock_row('page', 'Two'::text, 'anna') IS NOT NULL AS locked;
SELECT interlock.unlock_row('page', 'tWO'::text, 'ANNA');
SET interlock.direct_execution = off;
SELECT interlock.versioned_update('page', 'ONE'::text, 2, '{"a": 8}');
SELECT string_agg(key::text, ' '), kept_plans() > 0 AS by_a_statement FROM interlock.select_for_update('page', '{TWO,One}');
SELECT interlock.unlock_row('page', 'tWO'::text, 'ANNA');
SELECT title, a, version, lock_by FROM page ORDER BY a;
DROP TABLE page;

-- VER-2: a unique index that distinguishes more than its column does names no row; one that does not names one
CREATE TABLE page (id int PRIMARY KEY, title text COLLATE careless NOT NULL, a int);
CREATE UNIQUE INDEX by_title ON page (title COLLATE "C");
SELECT interlock.enable_versioning('page');
INSERT INTO page VALUES (1, 'one'), (2, 'ONE');
SELECT interlock.versioned_update('page', '{"title": "one"}', 1, '{"a": 7}');
DELETE FROM page WHERE id = 2;
DROP INDEX by_title;
CREATE UNIQUE INDEX by_title ON page (title);
SELECT interlock.versioned_update('page', '{"title": "ONE"}', 1, '{"a": 8}');
SELECT interlock.versioned_update('page', '{"title": "ONE"}', 1, '{"a": 8}');
SELECT * FROM page;
DROP TABLE page;

-- MRK-2: a row that was found by an equal name is not held by that name
CREATE TABLE page (id int PRIMARY KEY, status int NOT NULL DEFAULT 0, lock_by text COLLATE careless, lock_time timestamptz);
CREATE TABLE leaf (id int PRIMARY KEY, status int NOT NULL DEFAULT 0, lock_by text, lock_time timestamptz);
INSERT INTO page VALUES (1);
INSERT INTO leaf VALUES (1);
SELECT interlock.enable_marker(rel, status_column => 'status', holder_column => 'lock_by', time_column => 'lock_time')
FROM unnest('{page,leaf}'::regclass[]) rel;
UPDATE page SET status = 1, lock_by = 'A';
UPDATE page SET status = 0 WHERE lock_by = 'a';
UPDATE page SET status = 0 WHERE lock_by = 'A';
UPDATE leaf SET status = 1, lock_by = 'A';
UPDATE leaf SET status = 0 WHERE lock_by = 'a' COLLATE careless;
UPDATE leaf SET status = 0 WHERE lock_by = 'A';
DROP TABLE page, leaf;
DROP FUNCTION log_how, kept_plans;
DROP COLLATION careless;
