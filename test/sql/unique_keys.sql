-- VER-2: a row is named by the columns of any unique index over NOT NULL columns, in every function, with and without a statement; errors,
-- audits and history call it by its primary key
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA unique_keys;
SET search_path = unique_keys;
CREATE ROLE unique_keys_role;
GRANT USAGE ON SCHEMA unique_keys TO unique_keys_role;
CREATE FUNCTION changed(current jsonb, args jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT args';
CREATE SEQUENCE how; -- 1 when the call wrote directly, 2 by a statement, 3 not at all
CREATE FUNCTION note_how() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE context text;
BEGIN
    GET DIAGNOSTICS context = PG_CONTEXT;
    PERFORM setval('unique_keys.how', CASE WHEN context ~ 'SQL statement "(UPDATE|DELETE) .* AS t ' THEN 2 ELSE 1 END);
    RETURN NULL;
END $$;

-- What a function answers or raises, and the rows that are not as they were.
CREATE FUNCTION effect(setup text, call text, role text, directly boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text; detail text; hint text; code_raised text; stored text;
BEGIN
    DROP TABLE IF EXISTS "ShowSeats", "ShowSeats_history" CASCADE;
    DROP DOMAIN IF EXISTS seat_code;
    CREATE TABLE "ShowSeats" ("Id" int PRIMARY KEY, "ShowId" int NOT NULL, "SeatId" int NOT NULL, code text NOT NULL UNIQUE,
        state text DEFAULT 'free', a int, b int DEFAULT 5, "RowVer" bigint DEFAULT 1, UNIQUE ("ShowId", "SeatId"));
    INSERT INTO "ShowSeats" VALUES (5, 10, 12, 'A12', 'free', 1), (6, 10, 13, 'A13', 'free', 2), (7, 12, 10, 'B10', 'free', 3);
    PERFORM interlock.enable_versioning('"ShowSeats"', 'RowVer'), interlock.enable_marker('"ShowSeats"');
    PERFORM interlock.define_transitions('"ShowSeats"', 'state', '{"free": ["taken"], "taken": ["free"]}');
    EXECUTE setup;
    CREATE TRIGGER note_how AFTER UPDATE OR DELETE ON "ShowSeats" FOR EACH ROW EXECUTE FUNCTION note_how();
    PERFORM setval('how', 3);
    PERFORM set_config('interlock.direct_execution', directly::text, true);
    BEGIN
        IF role IS NOT NULL THEN EXECUTE format('SET LOCAL ROLE %I', role); END IF;
        EXECUTE call INTO answer;
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS answer = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT, code_raised = RETURNED_SQLSTATE;
    END;
    RESET ROLE;
    SELECT concat_ws(E'\n', CASE WHEN count(*) <> 3 THEN count(*) || ' rows' END, string_agg(concat_ws(' ', "Id", "ShowId", "SeatId", code, state, a, b, "RowVer", lock_by),
        E'\n' ORDER BY "Id") FILTER (WHERE "RowVer" > 1 OR lock_by IS NOT NULL)) INTO stored FROM "ShowSeats";
    RETURN concat_ws(E'\n', concat_ws(' ', code_raised, answer), nullif(detail, ''), CASE WHEN code_raised NOT IN ('IL001', 'IL003', 'IL005') THEN nullif(hint, '') END, nullif(stored, ''));
END $$;
-- One case: whether both ways are the same, and what they do.
CREATE FUNCTION try(call text, setup text DEFAULT '', role text DEFAULT NULL, OUT how text, OUT same boolean, OUT effect text) LANGUAGE plpgsql AS $$
DECLARE by_statement text;
BEGIN
    effect := effect(setup, call, role, true);
    how := (SELECT ('{direct,statement,no row}'::text[])[last_value] FROM how);
    by_statement := effect(setup, call, role, false);
    same := effect = by_statement AND (SELECT last_value > 1 FROM how);
    IF NOT same THEN effect := effect || E'\n<>\n' || by_statement; END IF;
END $$;

-- A reader's first statements, as they are typed
CREATE TABLE sys_config (id bigint PRIMARY KEY, config_key varchar(40) NOT NULL UNIQUE, config_value text, version bigint);
SELECT interlock.enable_versioning('sys_config');
INSERT INTO sys_config VALUES (1, 'site', 'old'), (2, 'mail', 'old');
SELECT * FROM interlock.try_versioned_update('sys_config', '{"config_key": "site"}', 1, '{"config_value": "new"}');
SELECT * FROM interlock.try_versioned_update('sys_config', '{"config_key":"site"}', 1, '{"config_value": "late"}');
SELECT * FROM sys_config ORDER BY id;
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"ShowId": 10, "SeatId": 12}', 1, '{"a": 9}')$$);

-- Versioned rows
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"SeatId": "12", "ShowId": 10}'::jsonb, 1, '{"a": 9}')$$);
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"code": "A13"}', 1, '{}')$$);
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"Id": 5}', 1, '{"a": 9}')$$);
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"ShowId": 10, "SeatId": 12}', 7, '{"a": 9}')$$);
SELECT * FROM try($$SELECT interlock.try_versioned_update('"ShowSeats"', '{"code": "B10"}', 7, '{"a": 9}')$$);
SELECT * FROM try($$SELECT interlock.try_versioned_update('"ShowSeats"', '{"code": "B10"}', 1, '{"a": 9}', '{"a": 3, "code": "B10"}', 'merge')$$);
SELECT * FROM try($$SELECT interlock.try_versioned_update('"ShowSeats"', '{"code": "B10"}', 7, '{"a": 9}', '{"a": 3}', 'merge')$$);
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"ShowId": 12, "SeatId": 12}', 1, '{"a": 9}')$$);
SELECT * FROM try($$SELECT interlock.try_versioned_update('"ShowSeats"', '{"code": "none"}', 1, '{"a": 9}')$$);
SELECT * FROM try($$SELECT interlock.versioned_delete('"ShowSeats"', '{"ShowId": 10, "SeatId": 12}', 1)$$);
SELECT * FROM try($$SELECT interlock.versioned_delete('"ShowSeats"', '{"ShowId": 10, "SeatId": 12}', 2)$$);
SELECT * FROM try($$SELECT interlock.assert_version('"ShowSeats"', '{"code": "A12"}', 1)$$);
SELECT * FROM try($$SELECT interlock.assert_version('"ShowSeats"', '{"code": "A12"}', 3)$$);
SELECT * FROM try($$SELECT interlock.update_with_retry('"ShowSeats"', '{"code": "A12"}', 'unique_keys.changed(jsonb, jsonb)', '{"a": 9}')$$);
SELECT * FROM try($$SELECT string_agg(m::text, ' ') FROM interlock.versioned_update_many('"ShowSeats"', '[{"key": {"code": "B10"}, "version": 1, "changes": {"a": 7}},
    {"key": 5, "version": 1, "changes": {"a": 8}}, {"key": {"ShowId": 10, "SeatId": 13}, "version": 1, "changes": {"a": 9}}, {"key": {"code": "A12"}, "version": 2, "changes": {"a": 0}}]') m$$);
SELECT * FROM try($$SELECT interlock.versioned_update_many('"ShowSeats"', '[{"key": {"code": "B10"}, "version": 3, "changes": {"a": 7}}]', true)$$);
-- upserts: the conflict is with the key that was named
SELECT * FROM try($$SELECT interlock.versioned_upsert('"ShowSeats"', '{"ShowId": 10, "SeatId": 14}', NULL, '{"a": 9, "code": "A14"}')$$, $$ALTER TABLE "ShowSeats" ALTER "Id" SET DEFAULT 8$$);
SELECT * FROM try($$SELECT interlock.versioned_upsert('"ShowSeats"', '{"ShowId": 10, "SeatId": 14}', NULL, '{"a": 9, "code": "A13"}')$$, $$ALTER TABLE "ShowSeats" ALTER "Id" SET DEFAULT 8$$);
SELECT * FROM try($$SELECT interlock.versioned_upsert('"ShowSeats"', '{"ShowId": 10, "SeatId": 12}', NULL, '{"a": 9, "code": "A14"}')$$, $$ALTER TABLE "ShowSeats" ALTER "Id" SET DEFAULT 8$$);
SELECT * FROM try($$SELECT interlock.versioned_upsert('"ShowSeats"', '{"ShowId": 10, "SeatId": 12}', 1, '{"a": 9}')$$);
-- Transitions
SELECT * FROM try($$SELECT interlock.transition('"ShowSeats"', '{"ShowId": 10, "SeatId": 12}', 'free', 'taken', '{"a": 9}')$$);
SELECT * FROM try($$SELECT interlock.try_transition('"ShowSeats"', '{"code": "A12"}', 'taken', 'free')$$);
SELECT * FROM try($$SELECT interlock.transition('"ShowSeats"', '{"code": "A12"}', 'taken', 'free')$$);
SELECT * FROM try($$SELECT interlock.transition('"ShowSeats"', '{"code": "A12"}', 'taken', 'gone')$$);
-- Markers
SELECT * FROM try($$SELECT row(locked, holder) FROM interlock.lock_row('"ShowSeats"', '{"ShowId": 10, "SeatId": 12}', 'anna')$$);
SELECT * FROM try($$SELECT interlock.save_row('"ShowSeats"', '{"code": "A12"}', 'anna', '{"a": 9}')$$, $$SELECT interlock.lock_row('"ShowSeats"', 5, 'anna')$$);
SELECT * FROM try($$SELECT interlock.save_row('"ShowSeats"', '{"code": "A12"}', 'anna', '{"a": 9}', 7)$$, $$SELECT interlock.lock_row('"ShowSeats"', 5, 'anna')$$);
SELECT * FROM try($$SELECT interlock.save_row('"ShowSeats"', '{"code": "A12"}', 'bert', '{"a": 9}')$$, $$SELECT interlock.lock_row('"ShowSeats"', 5, 'anna')$$);
SELECT * FROM try($$SELECT interlock.touch_row('"ShowSeats"', '{"code": "A12"}', 'anna') IS NOT NULL$$, $$SELECT interlock.lock_row('"ShowSeats"', 5, 'anna')$$);
SELECT * FROM try($$SELECT interlock.unlock_row('"ShowSeats"', '{"code": "A12"}', 'anna')$$, $$SELECT interlock.lock_row('"ShowSeats"', 5, 'anna')$$);
SELECT * FROM try($$SELECT row(locked, holder) FROM interlock.row_lock_of('"ShowSeats"', '{"code": "A12"}')$$, $$SELECT interlock.lock_row('"ShowSeats"', 5, 'anna')$$);
SELECT * FROM try($$SELECT interlock.force_unlock_row('"ShowSeats"', '{"code": "A12"}', 'why')$$, $$SELECT interlock.lock_row('"ShowSeats"', 5, 'anna')$$);
SELECT key FROM interlock.row_lock_audit WHERE table_name ~ 'ShowSeats';
-- Row locks: answered as they were named, locked in the order of the primary key
SELECT * FROM try($$SELECT string_agg(key::text, ' ') FROM interlock.select_for_update('"ShowSeats"', '[{"code": "B10"}, {"code": "A12"}, {"code": "none"}, {"code": "A12"}]') key$$);
SELECT * FROM try($$SELECT string_agg(key::text, ' ') FROM interlock.select_for_update('"ShowSeats"', '[{"ShowId": 12, "SeatId": 10}, 6, {"code": "A12"}]') key$$);
-- History is by the primary key
SELECT * FROM try($$SELECT string_agg(concat_ws(' ', version, operation, changed), ', ') FROM interlock.row_history('"ShowSeats"', '{"code": "A12"}')$$,
    $$SELECT interlock.enable_history('"ShowSeats"'); UPDATE "ShowSeats" SET a = 9 WHERE "Id" = 5; UPDATE "ShowSeats" SET code = 'A1' WHERE "Id" = 5; UPDATE "ShowSeats" SET code = 'A12' WHERE "Id" = 5$$);
SELECT * FROM try($$SELECT interlock.row_as_of('"ShowSeats"', '{"code": "A12"}', 'infinity')->'a'$$, $$SELECT interlock.enable_history('"ShowSeats"'); UPDATE "ShowSeats" SET a = 9 WHERE "Id" = 5$$);
SELECT * FROM try($$SELECT interlock.row_history('"ShowSeats"', '{"code": "A12"}')$$, $$SELECT interlock.enable_history('"ShowSeats"'); DELETE FROM "ShowSeats" WHERE "Id" = 5$$);

-- What names the row cannot be changed by the same call; other keys can
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"code": "A12"}', 1, '{"code": "C1"}')$$);
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"code": "A12"}', 1, '{"Id": 9}')$$);
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"code": "A12"}', 1, '{"SeatId": 99}')$$);
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', 5, 1, '{"code": "C1"}')$$);
SELECT * FROM try($$SELECT interlock.transition('"ShowSeats"', '{"Id": 5, "state": "free"}', 'free', 'taken')$$, $$ALTER TABLE "ShowSeats" ALTER state SET NOT NULL, ADD UNIQUE ("Id", state)$$);
-- VER-19: a value that is used again starts above the versions it had
SELECT * FROM try($$INSERT INTO "ShowSeats" VALUES (8, 1, 1, 'A12') RETURNING "RowVer"$$, $$SELECT interlock.versioned_update('"ShowSeats"', 5, 1, '{"a": 9}'); SELECT interlock.versioned_update('"ShowSeats"', 5, 2, '{"code": "C1"}')$$);
SELECT * FROM try($$INSERT INTO "ShowSeats" VALUES (8, 1, 1, 'A12') RETURNING "RowVer"$$, $$UPDATE "ShowSeats" SET a = 9 WHERE "Id" = 5; UPDATE "ShowSeats" SET code = 'C1' WHERE "Id" = 5$$);

-- What does not name a row: no object, other columns, nulls, values of the wrong type
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"ShowId": 10}', 1, '{"a": 9}')$$);
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"ShowId": 10, "SeatId": 12, "Id": 5}', 1, '{"a": 9}')$$);
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"showid": 10, "seatid": 12}', 1, '{"a": 9}')$$);
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"ShowId": 10, "SeatId": null}', 1, '{"a": 9}')$$);
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"ShowId": 10, "SeatId": "x"}', 1, '{"a": 9}')$$);
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{}', 1, '{"a": 9}')$$);
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"ShowId": 10, "SeatId": 12', 1, '{"a": 9}')$$);
SELECT * FROM try($$SELECT interlock.select_for_update('"ShowSeats"', '[{"SeatId": 12}]')$$);
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', 'A12', 1, '{"a": 9}')$$);
-- indexes that do not say which row: over expressions, some rows, later, nullable columns, a version; and an exclusion constraint
SELECT t.* FROM (VALUES ('{"a": 1}', 'CREATE UNIQUE INDEX ON "ShowSeats" ((a + 1))'),
    ('{"a": 1}', 'ALTER TABLE "ShowSeats" ALTER a SET NOT NULL; CREATE UNIQUE INDEX ON "ShowSeats" (a) WHERE a > 0'),
    ('{"a": 1}', 'ALTER TABLE "ShowSeats" ALTER a SET NOT NULL, ADD UNIQUE (a) DEFERRABLE'),
    ('{"a": 1}', 'ALTER TABLE "ShowSeats" ADD UNIQUE NULLS NOT DISTINCT (a)'),
    ('{"a": 1}', 'ALTER TABLE "ShowSeats" ALTER a SET NOT NULL, ADD EXCLUDE (a WITH =)'),
    ('{"a": 1}', 'ALTER TABLE "ShowSeats" ALTER a SET NOT NULL; CREATE UNIQUE INDEX ours ON "ShowSeats" (a); UPDATE pg_index SET indisvalid = false WHERE indexrelid = ''ours''::regclass'),
    ('{"b": 5, "RowVer": 1}', 'ALTER TABLE "ShowSeats" ALTER b SET NOT NULL, ADD UNIQUE (b, "RowVer")')) v (key, setup),
    try(format($$SELECT interlock.versioned_update('"ShowSeats"', %L, 1, '{"b": 9}')$$, key), setup) t;
-- and some that do
SELECT t.* FROM (VALUES ('{"a": 1}', 'ALTER TABLE "ShowSeats" ALTER a SET NOT NULL, ADD UNIQUE NULLS NOT DISTINCT (a)'),
    ('{"a": 1}', 'ALTER TABLE "ShowSeats" ALTER a SET NOT NULL, ADD UNIQUE (a) INCLUDE (state)'),
    ('{"code": "A12", "a": 1}', 'ALTER TABLE "ShowSeats" ALTER a SET NOT NULL, ADD UNIQUE (code, a), ADD UNIQUE (a, code)'),
    ('{"SeatId": 12, "ShowId": 10}', 'ALTER TABLE "ShowSeats" ADD UNIQUE ("SeatId", "ShowId")'),
    ('{"code": "A12"}', 'ALTER TABLE "ShowSeats" DROP CONSTRAINT "ShowSeats_code_key"; CREATE UNIQUE INDEX ON "ShowSeats" (code COLLATE "C" text_pattern_ops DESC)'),
    ('{"code": "A12"}', 'CREATE DOMAIN seat_code AS text CHECK (VALUE <> ''''); ALTER TABLE "ShowSeats" ALTER code TYPE seat_code')) v (key, setup),
    try(format($$SELECT interlock.versioned_update('"ShowSeats"', %L, 1, '{"b": 9}')$$, key), setup) t;
-- a type with an equality of its own
CREATE FUNCTION lt(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT lower($1) OPERATOR(pg_catalog.<) lower($2)';
CREATE FUNCTION le(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT lower($1) OPERATOR(pg_catalog.<=) lower($2)';
CREATE FUNCTION eq(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT lower($1) OPERATOR(pg_catalog.=) lower($2)';
CREATE FUNCTION ge(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT lower($1) OPERATOR(pg_catalog.>=) lower($2)';
CREATE FUNCTION gt(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT lower($1) OPERATOR(pg_catalog.>) lower($2)';
CREATE FUNCTION cmp(text, text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT bttextcmp(lower($1), lower($2))';
CREATE OPERATOR <% (LEFTARG = text, RIGHTARG = text, FUNCTION = lt);
CREATE OPERATOR <=% (LEFTARG = text, RIGHTARG = text, FUNCTION = le);
CREATE OPERATOR =% (LEFTARG = text, RIGHTARG = text, FUNCTION = eq, RESTRICT = eqsel, MERGES);
CREATE OPERATOR >=% (LEFTARG = text, RIGHTARG = text, FUNCTION = ge);
CREATE OPERATOR >% (LEFTARG = text, RIGHTARG = text, FUNCTION = gt);
CREATE OPERATOR CLASS ci FOR TYPE text USING btree AS OPERATOR 1 <%, OPERATOR 2 <=%, OPERATOR 3 =%, OPERATOR 4 >=%, OPERATOR 5 >%, FUNCTION 1 cmp(text, text);
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"code": "a12"}', 1, '{"a": 9}')$$, $$ALTER TABLE "ShowSeats" DROP CONSTRAINT "ShowSeats_code_key"; CREATE UNIQUE INDEX ON "ShowSeats" (code ci)$$);
-- A text is the primary key's value where that could be one
CREATE TABLE doc (path text PRIMARY KEY, number int NOT NULL UNIQUE, a int);
SELECT interlock.enable_versioning('doc');
INSERT INTO doc VALUES ('{"number": 2}', 1), ('b', 2);
SELECT interlock.versioned_update('doc', '{"number": 2}', 1, '{"a": 1}'), interlock.versioned_update('doc', '{"number": 2}'::jsonb, 1, '{"a": 2}'), interlock.versioned_update('doc', '{"path": "b"}'::jsonb, 2, '{"a": 3}');
SELECT * FROM doc ORDER BY number;
CREATE TABLE thing (id uuid PRIMARY KEY, number int NOT NULL UNIQUE, a int);
SELECT interlock.enable_versioning('thing');
INSERT INTO thing VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 1), ('b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 2);
SELECT interlock.versioned_update('thing', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', 1, '{"a": 1}'), interlock.versioned_update('thing', ' { "number": 2}', 1, '{"a": 2}');
SELECT * FROM thing ORDER BY number;
-- Without a primary key the narrowest index is the table's key, and any other names a row as well
CREATE TABLE pair (x int NOT NULL, y int NOT NULL, name text NOT NULL UNIQUE, a int, UNIQUE (x, y));
SELECT interlock.enable_versioning('pair');
INSERT INTO pair VALUES (1, 2, 'one two');
SELECT interlock.versioned_update('pair', 'one two'::text, 1, '{"a": 1}'), interlock.versioned_update('pair', '{"x": 1, "y": 2}'::jsonb, 2, '{"a": 2}'), interlock.versioned_update('pair', '{"name": "one two"}'::jsonb, 3, '{"a": 3}');
SELECT interlock.versioned_update('pair', '{"x": 1, "y": 2}'::jsonb, 1, '{"a": 3}');

-- DDL between two calls of a session
CREATE TABLE ddl (id int PRIMARY KEY, x int NOT NULL, y int NOT NULL, a int);
SELECT interlock.enable_versioning('ddl');
INSERT INTO ddl VALUES (1, 2, 3, 0);
SELECT interlock.versioned_update('ddl', '{"x": 2}', 1, '{"a": 1}');
CREATE UNIQUE INDEX by_x ON ddl (x);
SELECT interlock.versioned_update('ddl', '{"x": 2}', 1, '{"a": 1}');
ALTER TABLE ddl RENAME x TO z;
SELECT interlock.versioned_update('ddl', '{"x": 2}', 2, '{"a": 1}');
SELECT interlock.versioned_update('ddl', '{"z": 2}', 2, '{"a": 1}');
ALTER INDEX by_x RENAME TO by_z;
SELECT interlock.versioned_update('ddl', '{"z": 2}', 3, '{"a": 1}');
ALTER TABLE ddl ALTER z TYPE bigint;
SELECT interlock.versioned_update('ddl', '{"z": 2}', 4, '{"a": 1}');
ALTER TABLE ddl ALTER z DROP NOT NULL;
SELECT interlock.versioned_update('ddl', '{"z": 2}', 5, '{"a": 1}');
ALTER TABLE ddl ALTER z SET NOT NULL;
SELECT interlock.versioned_update('ddl', '{"z": 2}', 5, '{"a": 1}');
DROP INDEX by_z;
CREATE UNIQUE INDEX by_z ON ddl (y);
SELECT interlock.versioned_update('ddl', '{"z": 2}', 6, '{"a": 1}');
SELECT interlock.versioned_update('ddl', '{"y": 3}', 6, '{"a": 1}');
SET interlock.direct_execution = off;
SELECT interlock.versioned_update('ddl', '{"y": 3}', 7, '{"a": 1}');
ALTER TABLE ddl RENAME y TO w;
SELECT interlock.versioned_update('ddl', '{"w": 3}', 8, '{"a": 1}'), interlock.versioned_update('ddl', 1, 9, '{"a": 1}'), interlock.versioned_update('ddl', '{"w": 3}', 10, '{"a": 1}');
RESET interlock.direct_execution;

-- the operator of a key in another schema
CREATE TABLE named (id text NOT NULL, a int);
CREATE UNIQUE INDEX ON named (id ci);
SELECT interlock.enable_versioning('named');
INSERT INTO named VALUES ('Anna', 0);
SET interlock.direct_execution = off;
SELECT interlock.versioned_update('named', 'anna'::text, 1, '{"a": 1}');
CREATE SCHEMA operators;
ALTER OPERATOR =% (text, text) SET SCHEMA operators;
SELECT interlock.versioned_update('named', 'anna'::text, 2, '{"a": 2}');
ALTER SCHEMA operators RENAME TO "more operators";
SELECT interlock.versioned_update('named', 'anna'::text, 3, '{"a": 3}');
RESET interlock.direct_execution;

-- a NOT NULL constraint that older rows need not meet (18): as if there was none
ALTER TABLE ddl ADD q int;
CREATE UNIQUE INDEX ON ddl (q);
UPDATE ddl SET q = 1;
DO $$ BEGIN
    IF current_setting('server_version_num')::int >= 180000 THEN EXECUTE 'ALTER TABLE ddl ADD CONSTRAINT not_yet NOT NULL q NOT VALID'; END IF;
END $$;
SELECT interlock.versioned_update('ddl', '{"q": 1}', 12, '{"a": 1}');
ALTER TABLE ddl ALTER q SET NOT NULL;
SELECT interlock.versioned_update('ddl', '{"q": 1}', 12, '{"a": 1}');

-- Partitions, and what one of them has alone
CREATE TABLE whole (id int, region text NOT NULL, code text NOT NULL, a int, PRIMARY KEY (id, region), UNIQUE (region, code)) PARTITION BY LIST (region);
CREATE TABLE north PARTITION OF whole FOR VALUES IN ('n');
CREATE TABLE south PARTITION OF whole FOR VALUES IN ('s');
CREATE UNIQUE INDEX ON south (code);
SELECT interlock.enable_versioning('whole');
INSERT INTO whole VALUES (1, 'n', 'x', 0), (1, 's', 'x', 0);
SELECT interlock.versioned_update('whole', '{"region": "s", "code": "x"}', 1, '{"a": 1}'), interlock.versioned_update('south', '{"region": "s", "code": "x"}', 2, '{"a": 2}'), interlock.versioned_update('south', '{"code": "x"}', 3, '{"a": 3}');
SELECT interlock.versioned_update('whole', '{"region": "n", "code": "x"}', 5, '{"a": 1}');
SELECT interlock.versioned_update('whole', '{"code": "x"}', 1, '{"a": 1}');
SELECT * FROM whole ORDER BY region;

-- Whoever may not SELECT what names the row gets what a statement gets, and errors show no primary key that they may not SELECT
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"code": "A12"}', 1, '{"a": 9}')$$, $$GRANT SELECT ("Id", a, "RowVer"), UPDATE (a) ON "ShowSeats" TO unique_keys_role$$, 'unique_keys_role');
SELECT * FROM try($$UPDATE "ShowSeats" SET a = 9 WHERE code = 'A12' AND "RowVer" = 1 RETURNING "RowVer"$$, $$GRANT SELECT ("Id", a, "RowVer"), UPDATE (a) ON "ShowSeats" TO unique_keys_role$$, 'unique_keys_role');
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"code": "A12"}', 1, '{"a": 9}')$$, $$GRANT SELECT (code, a, "RowVer"), UPDATE (a) ON "ShowSeats" TO unique_keys_role$$, 'unique_keys_role');
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"code": "A12"}', 2, '{"a": 9}')$$, $$GRANT SELECT (code, a, "RowVer"), UPDATE (a) ON "ShowSeats" TO unique_keys_role$$, 'unique_keys_role');
SELECT * FROM try($$SELECT string_agg(key::text, ' ') FROM interlock.select_for_update('"ShowSeats"', '[{"code": "B10"}, {"code": "A12"}]') key$$, $$GRANT SELECT (code), UPDATE (a) ON "ShowSeats" TO unique_keys_role$$, 'unique_keys_role');
SELECT * FROM try($$SELECT interlock.row_history('"ShowSeats"', '{"code": "A12"}')$$, $$SELECT interlock.enable_history('"ShowSeats"'); GRANT SELECT (a) ON "ShowSeats" TO unique_keys_role; GRANT SELECT ON "ShowSeats_history" TO unique_keys_role$$, 'unique_keys_role');
-- Row security
SELECT t.* FROM (VALUES ($$SELECT interlock.versioned_update('"ShowSeats"', '{"code": "A12"}', 1, '{"a": 9}')$$), ($$SELECT interlock.try_versioned_update('"ShowSeats"', '{"code": "B10"}', 1, '{"a": 9}')$$)) v (call),
    try(call, $$GRANT SELECT, UPDATE ON "ShowSeats" TO unique_keys_role; ALTER TABLE "ShowSeats" ENABLE ROW LEVEL SECURITY; CREATE POLICY of_ten ON "ShowSeats" USING ("ShowId" = 10)$$, 'unique_keys_role') t;

-- The same at the other isolation levels
SET default_transaction_isolation = 'repeatable read';
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"ShowId": 10, "SeatId": 12}', 1, '{"a": 9}')$$);
SET default_transaction_isolation = 'serializable';
SELECT * FROM try($$SELECT interlock.versioned_update('"ShowSeats"', '{"ShowId": 10, "SeatId": 12}', 2, '{"a": 9}')$$);
RESET default_transaction_isolation;

DROP OWNED BY unique_keys_role;
DROP ROLE unique_keys_role;
DROP SCHEMA unique_keys, "more operators" CASCADE;
