-- Field ownership: what the owner of a table may not say
\set SHOW_CONTEXT never
CREATE TABLE doc (id int PRIMARY KEY, a int, b int, c int, g int GENERATED ALWAYS AS (a + 1) STORED, "Mixed" int);
-- each call, with the code of its error
CREATE FUNCTION call(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE h text;
BEGIN
    EXECUTE 'SELECT interlock.' || command;
    RETURN 'done';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS h = PG_EXCEPTION_HINT;
    RETURN concat_ws(' ', SQLSTATE, SQLERRM, '[' || nullif(h, '') || ']');
END $$;
-- arguments
SELECT command, call(command) FROM (VALUES
    ('own_columns(NULL, ''w'', ''{a}'')'), ('own_columns(''doc'', NULL, ''{a}'')'), ('own_columns(''doc'', ''w'', NULL)'), ('own_columns(''doc'', ''w'', ''{a}'', NULL)'),
    ('own_columns(''doc'', ''w'', ''{a,NULL}'')'), ('own_columns(''doc'', ''w'', ''{}'')'), ('own_columns(''doc'', ''w'', ''{a,b,a}'')'), ('own_columns(''doc'', ''w'', ''{{a,b},{c,a}}'')'),
    ('own_columns(''doc'', '''', ''{a}'')'), ('own_columns(''doc'', repeat(''w'', 257), ''{a}'')'), ('own_columns(''doc'', ''w'', ''{a}'', ''Reject'')'), ('own_columns(''doc'', ''w'', ''{a}'', ''merge'')'),
    ('own_columns(''doc'', ''w'', ''{x}'')'), ('own_columns(''doc'', ''w'', ''{A}'')'), ('own_columns(''doc'', ''w'', ''{mixed}'')'), ('own_columns(''doc'', ''w'', ''{ctid}'')'), ('own_columns(''doc'', ''w'', ''{a,g}'')'),
    ('share_columns(NULL, ''{a}'')'), ('share_columns(''doc'', NULL)'), ('share_columns(''doc'', ''{a}'', NULL)'), ('share_columns(''doc'', ''{a}'', ''mix'')'), ('share_columns(''doc'', ''{}'')'),
    ('share_columns(''doc'', ''{g}'')'), ('share_columns(''doc'', ''{x}'')'), ('hand_over_columns(''doc'', ''{a}'', NULL)'), ('hand_over_columns(''doc'', ''{a}'', '''')'), ('hand_over_columns(''doc'', ''{a}'', ''w'')'),
    ('hand_over_columns(''doc'', ''{x}'', ''w'')'), ('release_columns(''doc'', ''{a}'')'), ('release_columns(''doc'', ''{x}'')'), ('release_columns(''doc'', ''{}'')'), ('release_columns(''doc'', NULL)'),
    ('group_columns(''doc'', ''{a}'')'), ('group_columns(''doc'', ''{a,a}'')'), ('group_columns(''doc'', ''{a,g}'')'), ('group_columns(''doc'', ''{a,x}'')'), ('group_columns(''doc'', NULL)'),
    ('ungroup_columns(''doc'', ''{a}'')'), ('ungroup_columns(''doc'', ''{x}'')')) v (command);
SELECT count(*) AS rules FROM interlock.column_ownership;
-- what is declared already
SELECT command, call(command) FROM (VALUES
    (1, 'own_columns(''doc'', ''w'', ''{a,b}'')'), (2, 'own_columns(''doc'', ''w'', ''{a}'', ''skip'')'), (3, 'own_columns(''doc'', ''other'', ''{c,a}'')'), (4, 'share_columns(''doc'', ''{c,b}'')'),
    (5, 'share_columns(''doc'', ''{c}'', ''skip'')'), (6, 'share_columns(''doc'', ''{c}'', ''merge'')'), (7, 'own_columns(''doc'', ''w'', ''{c}'')'), (8, 'hand_over_columns(''doc'', ''{a,c}'', ''other'')'),
    (9, 'hand_over_columns(''doc'', ''{a}'', ''other'')'), (10, 'hand_over_columns(''doc'', ''{a}'', ''other'')'), (11, 'release_columns(''doc'', ''{b,Mixed}'')'), (12, 'group_columns(''doc'', ''{a,b}'')'),
    (13, 'group_columns(''doc'', ''{b,c}'')'), (14, 'group_columns(''doc'', ''{Mixed,c}'')'), (15, 'group_columns(''doc'', ''{b,a,id}'')'), (16, 'ungroup_columns(''doc'', ''{id,c}'')'), (17, 'release_columns(''doc'', ''{id}'')')) v (n, command) ORDER BY n;
SELECT * FROM interlock.column_ownership;
SELECT pg_get_triggerdef(oid) AS trigger FROM pg_trigger WHERE tgrelid = 'doc'::regclass;
-- everything again, one by one
SELECT command, call(command) FROM (VALUES (1, 'ungroup_columns(''doc'', ''{a,c}'')'), (2, 'ungroup_columns(''doc'', ''{b,id}'')'), (3, 'ungroup_columns(''doc'', ''{b}'')'), (4, 'release_columns(''doc'', ''{a}'')'),
    (5, 'release_columns(''doc'', ''{c,b}'')'), (6, 'release_columns(''doc'', ''{a}'')')) v (n, command) ORDER BY n;
SELECT count(*) AS triggers FROM pg_trigger WHERE tgrelid = 'doc'::regclass;
-- a group of a column that is gone: it is no owned one, updates pass
SELECT call('group_columns(''doc'', ''{b,c}'')');
ALTER TABLE doc DROP b;
INSERT INTO doc (id) VALUES (1);
UPDATE doc SET c = 1;
SELECT call('release_columns(''doc'', ''{b}'')');
UPDATE doc SET c = 1 RETURNING c;
SELECT count(*) AS triggers FROM pg_trigger WHERE tgrelid = 'doc'::regclass;
-- what has no rows of its own, or is not the caller's
CREATE VIEW v AS SELECT * FROM doc;
CREATE MATERIALIZED VIEW mv AS SELECT * FROM doc;
CREATE FOREIGN DATA WRAPPER own_fdw;
CREATE SERVER own_server FOREIGN DATA WRAPPER own_fdw;
CREATE FOREIGN TABLE ft (a int) SERVER own_server;
CREATE SEQUENCE sq;
SELECT command, call(command) FROM (VALUES
    ('own_columns(''v'', ''w'', ''{a}'')'), ('own_columns(''mv'', ''w'', ''{a}'')'), ('own_columns(''ft'', ''w'', ''{a}'')'), ('own_columns(''sq'', ''w'', ''{last_value}'')'), ('own_columns(''doc_pkey'', ''w'', ''{id}'')'),
    ('own_columns(''pg_class'', ''w'', ''{relname}'')'), ('own_columns(99999999, ''w'', ''{a}'')'), ('share_columns(''v'', ''{a}'')'), ('release_columns(''pg_class'', ''{relname}'')'), ('group_columns(''v'', ''{a,c}'')')) v (command);
CREATE ROLE own_stranger;
GRANT ALL ON doc TO own_stranger;
SET ROLE own_stranger;
SELECT command, call(command) FROM (VALUES ('own_columns(''doc'', ''w'', ''{a}'')'), ('share_columns(''doc'', ''{a}'')'), ('release_columns(''doc'', ''{a}'')'), ('hand_over_columns(''doc'', ''{a}'', ''w'')'),
    ('group_columns(''doc'', ''{a,c}'')'), ('ungroup_columns(''doc'', ''{a,c}'')')) v (command);
RESET ROLE;
DROP OWNED BY own_stranger;
DROP ROLE own_stranger;
DROP SERVER own_server CASCADE;
DROP FOREIGN DATA WRAPPER own_fdw;
-- somebody else's trigger of that name
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER zzz_interlock_columns BEFORE UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT call('own_columns(''doc'', ''w'', ''{a}'')');
DROP TRIGGER zzz_interlock_columns ON doc;
-- temporary tables are fine; long names and many columns, too
CREATE TEMP TABLE tmp (id int, a int);
SELECT call('own_columns(''tmp'', ''w'', ''{a}'')');
DO $$ BEGIN EXECUTE 'CREATE TABLE wide (' || (SELECT string_agg(format('%I int', repeat('ä', 29) || g), ', ') FROM generate_series(1, 500) g) || ')'; END $$;
INSERT INTO wide DEFAULT VALUES;
SELECT call(format('own_columns(''wide'', repeat(''ü'', 128), %L)', (SELECT array_agg(attname) FROM pg_attribute WHERE attrelid = 'wide'::regclass AND attnum > 0)));
SELECT count(*), min(writer) = repeat('ü', 128) AS writer FROM interlock.column_ownership WHERE rel = 'wide'::regclass;
DO $$ BEGIN EXECUTE format('UPDATE wide SET %I = 1', repeat('ä', 29) || 500); EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', SQLSTATE; END $$;
DROP TABLE wide, doc, tmp CASCADE;
DROP FUNCTION call, nothing;

-- triggers that anybody may create: malformed ones break nothing but their own table
CREATE TABLE odd (id int PRIMARY KEY, a int, b int);
INSERT INTO odd VALUES (1, 1, 1);
CREATE TABLE fine (id int PRIMARY KEY, a int);
SELECT interlock.share_columns('fine', '{a}');
DO $$ DECLARE arguments text; BEGIN
    FOREACH arguments IN ARRAY ARRAY['''a'', ''group'', ''xx''', '''a'', ''group'', ''''', '''a'', ''group'', ''1x''', '''a'', ''group'', ''0''', '''a'', ''group'', ''-1''',
        '''a'', ''group'', ''99999999999999999999''', '''a'', ''group'', ''2147483647''', '''a'', ''group''', '''a'', ''own:reject'', ''w'', ''a'', ''own:skip'', ''w''', '''a'', ''what'', ''w''', ''] LOOP
        EXECUTE format('CREATE TRIGGER mine BEFORE UPDATE ON odd FOR EACH ROW EXECUTE FUNCTION interlock_internal.ownership_trigger(%s)', arguments);
        RAISE NOTICE '%: % listed', arguments, (SELECT array_agg(rel) FROM interlock.column_ownership);
        BEGIN
            UPDATE odd SET a = 2;
        EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, SQLERRM;
        END;
        DROP TRIGGER mine ON odd;
    END LOOP;
END $$;
DROP TABLE odd, fine;

-- a merge goes by the version, so its columns cannot be ignored by it
CREATE TABLE counted (id int PRIMARY KEY, hits int, seen int);
SELECT interlock.enable_versioning('counted', ignore_columns => '{hits}');
SELECT interlock.share_columns('counted', '{seen,hits}', 'merge');
SELECT interlock.share_columns('counted', '{seen,hits}', 'skip');
SELECT interlock.share_columns('counted', '{seen}', 'merge');
SELECT interlock.enable_versioning('counted', ignore_columns => '{hits,seen}');
SELECT interlock.enable_versioning('counted', ignore_columns => '{hits}');
SELECT interlock.enable_versioning('counted', ignore_columns => '{nothing}');
DROP TABLE counted;

-- a hint that says what to call can be pasted, and helps
CREATE FUNCTION pasted(statement text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE hint text; BEGIN
    BEGIN
        EXECUTE statement;
        RETURN 'no error';
    EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    END;
    EXECUTE substring(hint FROM '(?:SELECT|DROP) .*?;');
    EXECUTE statement;
    RETURN substring(hint FROM '(?:SELECT|DROP) .*?;');
END $$;
CREATE TABLE "It's odd" (id int PRIMARY KEY, "a b" int, version bigint, other bigint);
SELECT pasted($$SELECT * FROM interlock.try_versioned_delete('"It''s odd"', '1', 1)$$);
SELECT pasted($$SELECT interlock.enable_versioning('"It''s odd"', 'other')$$);
SELECT interlock.own_columns('"It''s odd"', 'public', '{"a b"}');
SELECT pasted($$SELECT interlock.own_columns('"It''s odd"', 'w', '{"a b"}')$$);
SELECT pasted($$SELECT interlock.share_columns('"It''s odd"', '{"a b"}')$$);
SELECT pasted($$SELECT interlock.own_columns('"It''s odd"', 'w', '{"a b"}')$$);
SELECT interlock.release_columns('"It''s odd"', '{"a b"}');
INSERT INTO "It's odd" VALUES (1);
CREATE TRIGGER "My one" AFTER UPDATE ON "It's odd" FOR EACH ROW EXECUTE FUNCTION interlock_internal.history_trigger();
SELECT pasted($$UPDATE "It's odd" SET id = 1$$);
DROP TABLE "It's odd";
DROP FUNCTION pasted;
