-- DDL between two statements of one transaction, and after it, for versions, transitions and markers: what can follow does; what cannot
-- raises with the way back. Each case: what a session has written, the DDL, what it writes next, what the DDL leaves in another session's
-- view (here: after the savepoint is released), and what is there after a savepoint that the DDL was in is rolled back.
BEGIN;
CREATE TYPE state AS ENUM ('open', 'done', 'paid');
CREATE SCHEMA other;

CREATE FUNCTION says(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    message text; hint text; answer text;
BEGIN
    EXECUTE command INTO answer;
    RETURN coalesce(nullif(answer, ''), 'done'); -- void is empty
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(' / ', SQLSTATE || ': ' || message, nullif(hint, ''));
END $$;

CREATE TABLE cases (number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, what text, ddl text, call text, answer text);
INSERT INTO cases (what, ddl, call, answer) VALUES
    -- names of tables and schemas: the trigger is the table's
    ('a table is renamed', 'ALTER TABLE doc RENAME TO page', $$SELECT interlock.versioned_update('page', 1, 2, '{"body": "b"}')$$, '3'),
    ('and its old name', 'ALTER TABLE doc RENAME TO page', $$SELECT interlock.versioned_update('doc', 1, 2, '{"body": "b"}')$$, '42P01: relation "doc" does not exist'),
    ('a table takes its name', 'ALTER TABLE doc RENAME TO page; CREATE TABLE doc (LIKE page)', $$SELECT interlock.versioned_update('doc', 1, 2, '{"body": "b"}')$$,
        '55000: table "doc" is not versioned / Its owner can enable it: SELECT interlock.enable_versioning(''public.doc'');'),
    ('its schema is changed', 'ALTER TABLE doc SET SCHEMA other', $$SELECT interlock.transition('other.doc', 1, 'open', 'done')$$, 'done'),
    ('its schema is renamed', 'ALTER TABLE doc SET SCHEMA other; ALTER SCHEMA other RENAME TO another', $$SELECT interlock.save_row('another.doc', 1, 'anna', '{"body": "b"}', 2)$$, '3'),
    -- columns
    ('a column that is written is renamed', 'ALTER TABLE doc RENAME body TO text', $$SELECT interlock.save_row('doc', 1, 'anna', '{"text": "b"}', 2)$$, '3'),
    ('and its old name', 'ALTER TABLE doc RENAME body TO text', $$SELECT interlock.save_row('doc', 1, 'anna', '{"body": "b"}', 2)$$,
        '42703: column "body" of table "doc" does not exist / Column names are matched exactly, with upper and lower case.'),
    ('a column is replaced', 'ALTER TABLE doc DROP body; ALTER TABLE doc ADD body int', $$SELECT interlock.versioned_update('doc', 1, 2, '{"body": 7}')$$, '3'),
    ('the key is renamed', 'ALTER TABLE doc RENAME id TO number', $$SELECT interlock.transition('doc', '{"number": 1}', 'open', 'done')$$, 'done'),
    ('the key has another type', 'ALTER TABLE doc ALTER id TYPE text', $$SELECT interlock.versioned_update('doc', '1', 2, '{"body": "b"}')$$, '3'),
    ('the version is renamed', 'ALTER TABLE doc RENAME version TO revision', $$SELECT interlock.versioned_update('doc', 1, 2, '{"body": "b"}')$$,
        '55000: version column "version" of table "doc" is gone or has another type / The table''s owner calls interlock.enable_versioning again with the current '
        'name of the column and the other settings, which SELECT interlock.configuration(''public.doc'') shows.'),
    ('for a plain update, too', 'ALTER TABLE doc RENAME version TO revision', $$UPDATE doc SET body = 'b' RETURNING 'written'$$,
        '55000: version column "version" of table "doc" is gone or has another type / The table''s owner calls interlock.enable_versioning again with the current '
        'name of the column and the other settings, which SELECT interlock.configuration(''public.doc'') shows.'),
    ('the hint is followed', $$ALTER TABLE doc RENAME version TO revision; SELECT interlock.enable_versioning('doc', 'revision', '{seen}')$$,
        $$SELECT interlock.versioned_update('doc', 1, 2, '{"body": "b"}')$$, '3'),
    ('and keeps where keys start that were used', $$ALTER TABLE doc RENAME version TO revision; SELECT interlock.enable_versioning('doc', 'revision', '{seen}');
        SELECT interlock.set_holder('anna'); DELETE FROM doc; INSERT INTO doc VALUES (1, 'c', 'open')$$, 'SELECT revision FROM doc', '3'),
    ('the version is replaced', 'ALTER TABLE doc DROP version; ALTER TABLE doc ADD version bigint DEFAULT 7', $$SELECT interlock.versioned_update('doc', 1, 7, '{"body": "b"}')$$, '8'),
    ('the version has another type', 'ALTER TABLE doc ALTER version TYPE integer', $$SELECT interlock.versioned_update('doc', 1, 2, '{"body": "b"}')$$, '3'),
    ('the state is renamed', 'ALTER TABLE doc RENAME status TO state', $$SELECT interlock.transition('doc', 1, 'open', 'done', state_column => 'state')$$,
        '55000: column "state" of table "doc" has no transitions / Its owner can call interlock.define_transitions.'),
    ('for any column', 'ALTER TABLE doc RENAME status TO state', $$SELECT interlock.transition('doc', 1, 'open', 'done')$$,
        '55000: state column "status" of table "doc" is gone or has another type / The table''s owner notes what SELECT interlock.configuration(''public.doc'') shows, calls '
        'interlock.drop_transitions with the old name of the column, and interlock.define_transitions with its current name.'),
    ('the hint is followed', $$ALTER TABLE doc RENAME status TO state; SELECT interlock.drop_transitions('doc', 'status');
        SELECT interlock.define_transitions('doc', 'state', '{"open": ["done"]}')$$, $$SELECT interlock.transition('doc', 1, 'open', 'done')$$, 'done'),
    ('the state has another type', 'ALTER TABLE doc ALTER status TYPE text', $$SELECT interlock.transition('doc', 1, 'open', 'done')$$, 'done'),
    ('which has none of them', 'ALTER TABLE doc ALTER status DROP DEFAULT, ALTER status TYPE int USING 0', $$SELECT interlock.transition('doc', 1, 0, 1)$$,
        '22023: argument "from_state": no transition of column "status" of table "doc" names the state "0" / The transitions of the column name states that its type '
        'integer does not have: "open", "done". The table''s owner defines them again with interlock.define_transitions; SELECT '
        'interlock.configuration(''public.doc'') shows them.'),
    ('a column of the marker is renamed', 'ALTER TABLE doc RENAME lock_by TO editor', $$SELECT interlock.save_row('doc', 1, 'anna', '{"body": "b"}', 2)$$,
        '55000: a marker column of table "doc" is gone or has another type / The table''s owner calls interlock.enable_marker again with the current names of the '
        'columns and the other settings, which SELECT interlock.configuration(''public.doc'') shows.'),
    ('the hint is followed', $$ALTER TABLE doc RENAME lock_by TO editor; SELECT interlock.enable_marker('doc', '1 hour', holder_column => 'editor')$$,
        $$SELECT interlock.save_row('doc', 1, 'anna', '{"body": "b"}', 2)$$, '3'),
    ('the status of the marker', 'ALTER TABLE doc RENAME lock_status TO held', $$SELECT interlock.unlock_row('doc', 1, 'anna')$$,
        '55000: a marker column of table "doc" is gone or has another type / The table''s owner calls interlock.enable_marker again with the current names of the '
        'columns and the other settings, which SELECT interlock.configuration(''public.doc'') shows.'),
    ('without its new name', $$ALTER TABLE doc RENAME lock_status TO held$$, $$SELECT interlock.enable_marker('doc', '1 hour')$$,
        '55000: column "lock_by" of table "doc" looks like half of a lock: there is no column "lock_status" / If it is a lock, adopt its status too, the column '
        'that has 1 in rows that are held: SELECT interlock.enable_marker(''public.doc'', status_column => ...). If it means something else, give the marker '
        'columns of its own: SELECT interlock.enable_marker(''public.doc'', holder_column => ''marker_by'', time_column => ''marker_time'', until_column => '
        '''marker_until'', reason_column => ''marker_reason'').'),
    -- labels
    ('a label that a row has', $$ALTER TYPE state RENAME VALUE 'open' TO 'begun'$$, $$SELECT interlock.transition('doc', 1, 'begun', 'done')$$,
        '22023: argument "from_state": no transition of column "status" of table "doc" names the state "begun" / The transitions of the column name states that its '
        'type state does not have: "open". The table''s owner defines them again with interlock.define_transitions; SELECT '
        'interlock.configuration(''public.doc'') shows them.'),
    ('a label that no transition names', $$ALTER TYPE state RENAME VALUE 'paid' TO 'settled'$$, $$SELECT interlock.transition('doc', 1, 'open', 'done')$$, 'done'),
    -- keys
    ('the primary key is another', 'ALTER TABLE doc DROP CONSTRAINT doc_pkey; ALTER TABLE doc ADD PRIMARY KEY (code)', $$SELECT interlock.versioned_update('doc', 'x', 2, '{"body": "b"}')$$, '3'),
    ('and the old one', 'ALTER TABLE doc DROP CONSTRAINT doc_pkey; ALTER TABLE doc ADD PRIMARY KEY (code)', $$SELECT interlock.versioned_update('doc', '{"id": 1}'::jsonb, 2, '{"body": "b"}')$$,
        '22023: key does not fit the key of table "doc" / Give a jsonb object with exactly these members: "code".'),
    ('there is no key', 'ALTER TABLE doc DROP CONSTRAINT doc_pkey, DROP CONSTRAINT doc_code_key', $$SELECT interlock.transition('doc', 1, 'open', 'done')$$,
        '55000: table "doc" has no key that names one row / Add a primary key, or a unique index over columns that are NOT NULL; not a deferrable or a partial one.'),
    -- triggers and parts
    ('the trigger is renamed', 'ALTER TRIGGER zzz_interlock_version ON doc RENAME TO zzz_other', $$SELECT interlock.versioned_update('doc', 1, 2, '{"body": "b"}')$$, '3'),
    ('the trigger is dropped', 'DROP TRIGGER zzz_interlock_version ON doc', $$SELECT interlock.versioned_update('doc', 1, 2, '{"body": "b"}')$$,
        '55000: table "doc" is not versioned / Its owner can enable it: SELECT interlock.enable_versioning(''public.doc'');'),
    ('a partition is detached', 'ALTER TABLE parted DETACH PARTITION parted_1', $$SELECT interlock.versioned_update('parted_1', 1, 2, '{"body": "b"}')$$,
        '55000: table "parted_1" is not versioned / Its owner can enable it: SELECT interlock.enable_versioning(''public.parted_1'');'),
    ('and the table above', 'ALTER TABLE parted DETACH PARTITION parted_1', $$SELECT interlock.versioned_update('parted', 1, 2, '{"body": "b"}')$$,
        'P0002: table "parted" has no such row / It was deleted, never existed, or is hidden by row security.'),
    ('a partition is attached again', 'ALTER TABLE parted DETACH PARTITION parted_1; ALTER TABLE parted ATTACH PARTITION parted_1 DEFAULT',
        $$SELECT interlock.versioned_update('parted', 1, 2, '{"body": "b"}')$$, '3'),
    ('a partition is attached', 'CREATE TABLE parted_2 (LIKE parted INCLUDING ALL); INSERT INTO parted_2 (id, body, status) VALUES (5, ''a'', ''open'');
        ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (5) TO (6)', $$SELECT interlock.versioned_update('parted', 5, 1, '{"body": "b"}')$$, '2'),
    ('and its markers', 'CREATE TABLE parted_2 (LIKE parted INCLUDING ALL); INSERT INTO parted_2 (id, body, status) VALUES (5, ''a'', ''open'');
        ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (5) TO (6)', $$SELECT locked FROM interlock.lock_row('parted', 5, 'anna')$$, 'true');

-- What a transaction has written before the DDL.
CREATE FUNCTION write() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    CREATE TABLE doc (id int PRIMARY KEY, body text, status state DEFAULT 'open', code text NOT NULL DEFAULT 'x' UNIQUE, seen int);
    CREATE TABLE parted (id int PRIMARY KEY, body text, status state DEFAULT 'open') PARTITION BY RANGE (id);
    CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
    PERFORM interlock.enable_versioning('doc', ignore_columns => '{seen}'), interlock.enable_versioning('parted'),
        interlock.define_transitions('doc', 'status', '{"open": ["done"]}'), interlock.define_transitions('parted', 'status', '{"open": ["done"]}'),
        interlock.enable_marker('doc', '1 hour'), interlock.enable_marker('parted', '1 hour');
    INSERT INTO doc VALUES (1, 'a');
    INSERT INTO parted VALUES (1, 'a');
    PERFORM interlock.set_holder('anna'), interlock.lock_row('doc', 1, 'anna'), interlock.lock_row('parted', 1, 'anna');
    PERFORM interlock.versioned_update('doc', 1, 1, '{"body": "written"}'), interlock.versioned_update('parted', 1, 1, '{"body": "written"}');
END $$;

-- In a savepoint that is rolled back in the end: the DDL, and what is written then. With the triggers and plans that are cached.
CREATE FUNCTION try(ddl text, call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text;
BEGIN
    BEGIN
        EXECUTE ddl;
        answer = says(call);
        RAISE SQLSTATE 'XXROL';
    EXCEPTION WHEN SQLSTATE 'XXROL' THEN
        RETURN answer;
    END;
END $$;

SELECT plan(4 * count(*)::int) FROM cases;
SELECT write();
SET LOCAL client_min_messages = warning;
SELECT is(try(ddl, call), answer, what || ': ' || number) FROM cases ORDER BY number;
SET LOCAL interlock.direct_execution = off;
SELECT is(try(ddl, call), answer, what || ', by a statement: ' || number) FROM cases ORDER BY number;
RESET interlock.direct_execution;
-- after each of them the savepoint was rolled back: everything is as it was
SELECT is(concat_ws(' ', try('SELECT 1', $$SELECT interlock.versioned_update('doc', 1, 2, '{"body": "b"}')$$),
    try(ddl, 'SELECT 1'), try('SELECT 1', $$SELECT interlock.versioned_update('doc', 1, 2, '{"body": "b"}')$$),
    try('SELECT 1', $$SELECT interlock.transition('doc', 1, 'open', 'done')$$), try('SELECT 1', $$SELECT interlock.unlock_row('doc', 1, 'anna')$$),
    try('SELECT 1', $$SELECT interlock.versioned_update('parted', 1, 2, '{"body": "b"}')$$)),
    '3 1 3 done true 3', what || ', rolled back: ' || number) FROM cases ORDER BY number;
-- once more, after what was written since
SELECT is(try(ddl, call), answer, what || ', once more: ' || number) FROM cases ORDER BY number;

SELECT * FROM finish();
ROLLBACK;
