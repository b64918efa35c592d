-- HIS-67: random writes of two tables, one with whole entries and one with short ones, have the same history. Among the writes
-- are suppression, DDL, disabled triggers, rolled back savepoints, triggers that write again, TRUNCATE and trimming.
BEGIN;
SELECT plan(6);
SET LOCAL client_min_messages = error;
SELECT setseed(0.66);

CREATE TABLE whole (id int PRIMARY KEY, a int, b text, c numeric, d jsonb, e text[], f timestamptz) ;
CREATE TABLE short (LIKE whole INCLUDING ALL);
SELECT interlock.enable_versioning(t), interlock.enable_history(t, ignore_columns => '{e}') FROM unnest('{whole,short}'::text[]) t;
CREATE FUNCTION settings(entries int) RETURNS void LANGUAGE sql AS $$
    SELECT interlock.enable_history('whole', entries, ignore_columns => '{e}'), interlock.enable_history('short', entries, ignore_columns => '{e}', whole_every => 4) $$;
SELECT settings(NULL);
-- a second write of the same row before the entry of the first one
CREATE FUNCTION write_again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.a % 10 = 7 THEN EXECUTE format('UPDATE %I SET a = a + 1 WHERE id = $1', TG_TABLE_NAME) USING NEW.id; END IF;
    RETURN NULL; END $$;
CREATE TRIGGER "0" AFTER INSERT OR UPDATE ON whole FOR EACH ROW EXECUTE FUNCTION write_again();
CREATE TRIGGER "0" AFTER INSERT OR UPDATE ON short FOR EACH ROW EXECUTE FUNCTION write_again();

-- A statement with %I for the table.
CREATE FUNCTION some_statement() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    one int = 1 + random() * 5;
    value int = random() * 30;
    choice int = random() * 100;
BEGIN
    RETURN CASE
        WHEN choice < 12 THEN format('INSERT INTO %%I (id, a, b, c, d) VALUES (%s, %s, ''x'', 1.0, ''{"k": [1, null]}'') ON CONFLICT (id) DO UPDATE SET a = excluded.a', one, value)
        WHEN choice < 16 THEN format('DELETE FROM %%I WHERE id = %s', one)
        WHEN choice < 30 THEN format('UPDATE %%I SET a = %s WHERE id = %s', value, one)
        WHEN choice < 45 THEN format('UPDATE %%I SET b = repeat(''%s'', %s) WHERE id < %s', value, value * 100, one)
        WHEN choice < 52 THEN format('UPDATE %%I SET c = %s, e = ARRAY[''%s''] WHERE id = %s', (ARRAY['1', '1.0', '1.00', '2', 'NULL', '''NaN'''])[1 + value % 6], value, one)
        WHEN choice < 58 THEN format('UPDATE %%I SET d = %L WHERE id = %s', (ARRAY['null', '{}', '[]', '{"k": {"l": 1.50}}', '"x"'])[1 + value % 5], one)
        WHEN choice < 64 THEN format('UPDATE %%I SET f = ''2026-01-01''::timestamp + ''%s hours'' WHERE id >= %s', value, one)
        WHEN choice < 68 THEN format('UPDATE %%I SET id = id + 10 WHERE id = %s; UPDATE %%1$I SET id = id - 10 WHERE id > 10', one)
        WHEN choice < 74 THEN format('SELECT interlock.suppress_history(%%1$L, ''x''); UPDATE %%1$I SET a = a + %s WHERE id = %s; SELECT interlock.restore_history(%%1$L)', value % 2, one)
        WHEN choice < 78 THEN format('SET LOCAL session_replication_role = replica; UPDATE %%I SET b = ''%s'' WHERE id = %s; SET LOCAL session_replication_role = origin', value, one)
        WHEN choice < 81 THEN format('DO ''BEGIN UPDATE %%I SET a = -1; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN END''')
        WHEN choice < 83 THEN 'ALTER TABLE %I ADD n' || nextval('names') || ' int DEFAULT 5'
        WHEN choice < 84 THEN (SELECT format('ALTER TABLE %%I DROP %I', min(attname)) FROM pg_attribute WHERE attrelid = 'short'::regclass AND attname LIKE 'n%' HAVING count(*) > 0)
        WHEN choice < 86 THEN (SELECT format('ALTER TABLE %%I RENAME %I TO m%s', min(attname), nextval('names')) FROM pg_attribute WHERE attrelid = 'short'::regclass AND attname LIKE 'n%' HAVING count(*) > 0)
        WHEN choice < 87 THEN (ARRAY['ALTER TABLE %I ALTER c TYPE numeric(20, 2)', 'ALTER TABLE %I ALTER c TYPE numeric'])[1 + value % 2]
        WHEN choice < 88 THEN 'TRUNCATE %I'
        WHEN choice < 91 THEN format('SET LOCAL timezone = %L', (ARRAY['UTC', 'Asia/Tokyo'])[1 + value % 2])
        WHEN choice < 93 THEN format('SET LOCAL interlock.direct_execution = %s', (ARRAY['on', 'off'])[1 + value % 2])
        WHEN choice < 95 THEN 'SELECT interlock.trim_history(%L)'
        WHEN choice < 97 THEN 'SELECT settings(' || (ARRAY['NULL', '3', '7', '10'])[1 + value % 4] || ')'
    END;
END $$;
CREATE SEQUENCE names;

CREATE FUNCTION history_of(name text, OUT key int, OUT entry text) RETURNS SETOF record LANGUAGE plpgsql AS $$ BEGIN
    FOR i IN 1 .. 16 LOOP
        key = i;
        FOR entry IN EXECUTE format('SELECT concat_ws('' '', version, operation, row_data, changed, before) FROM interlock.row_history(%L, $1)', name) USING key LOOP
            RETURN NEXT;
        END LOOP;
    END LOOP; END $$;
CREATE TABLE differences (step int, statement text, difference text);
DO $$
DECLARE statement text;
BEGIN
    FOR step IN 1 .. 700 LOOP
        statement = some_statement();
        CONTINUE WHEN statement IS NULL;
        FOR i IN 1 .. 2 LOOP
            EXECUTE format(statement, (ARRAY['whole', 'short'])[i]);
        END LOOP;
        CONTINUE WHEN step % 25 > 0;
        INSERT INTO differences SELECT step, statement, concat_ws(' | ', key, n, COALESCE(w.entry, 'none'), COALESCE(s.entry, 'none'))
          FROM (SELECT *, row_number() OVER (PARTITION BY key) AS n FROM history_of('whole')) w
          FULL JOIN (SELECT *, row_number() OVER (PARTITION BY key) AS n FROM history_of('short')) s USING (key, n)
         WHERE w.entry IS DISTINCT FROM s.entry;
    END LOOP;
END $$;
SELECT is_empty('SELECT * FROM differences LIMIT 3', 'HIS-67: row_history is the same');
SELECT results_eq($$SELECT interlock.row_as_of('short', g, clock_timestamp()) FROM generate_series(1, 16) g$$,
    $$SELECT interlock.row_as_of('whole', g, clock_timestamp()) FROM generate_series(1, 16) g$$, 'HIS-67: row_as_of as well');
SELECT is_empty($$SELECT * FROM short_history h WHERE builds_on IS NOT NULL AND NOT EXISTS (SELECT FROM short_history b WHERE b.id = h.builds_on AND b.distance < h.distance)$$,
    'HIS-67: what an entry builds on is there');
SELECT set_eq('SELECT DISTINCT distance FROM short_history', 'SELECT * FROM generate_series(0, 3) UNION ALL SELECT NULL', 'HIS-67: of four entries one is whole');
SELECT cmp_ok((SELECT count(*) FROM short_history WHERE builds_on IS NOT NULL), '>', 10::bigint, 'HIS-67: there are short entries');
SELECT is_empty('SELECT FROM whole_history WHERE builds_on IS NOT NULL OR distance IS NOT NULL OR row_hash IS NOT NULL', 'HIS-67: and none without whole_every');

SELECT * FROM finish();
ROLLBACK;
