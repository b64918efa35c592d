-- What runs as the owner of a table gives the caller no more than his own rights, and an administrator's rights nobody.
\set VERBOSITY terse
SET client_min_messages = notice;
CREATE ROLE interlock_owner;
CREATE ROLE interlock_clerk;
CREATE SCHEMA owned AUTHORIZATION interlock_owner;
GRANT USAGE ON SCHEMA owned TO interlock_clerk;

-- SEC-8: a constraint of the history table shows the row to those who may read that table, to nobody else
SET ROLE interlock_owner;
CREATE TABLE owned.account (id int PRIMARY KEY, secret text, note text);
SELECT interlock.enable_history('owned.account');
INSERT INTO owned.account VALUES (1, 'hunter2', 'a');
ALTER TABLE owned.account_history ADD CONSTRAINT writer_is_known CHECK (writer IS NOT NULL OR operation = 'insert');
GRANT UPDATE (note) ON owned.account TO interlock_clerk;
CREATE FUNCTION owned.detail_of(command text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE detail text; BEGIN
    EXECUTE command; RETURN 'passed';
EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL; RETURN sqlstate || ': ' || detail; END $$;
SET ROLE interlock_clerk;
SELECT owned.detail_of('UPDATE owned.account SET note = ''b''');
SET ROLE interlock_owner;
SELECT owned.detail_of('UPDATE owned.account SET note = ''b''') LIKE '23514: Failing row contains%hunter2%' AS shown;
ALTER TABLE owned.account_history DROP CONSTRAINT writer_is_known;
CREATE UNIQUE INDEX ON owned.account_history ((jsonb_extract_path_text(row_data, 'secret')));
SET ROLE interlock_clerk;
SELECT owned.detail_of('UPDATE owned.account SET note = ''b''');
SET ROLE interlock_owner;
SELECT owned.detail_of('UPDATE owned.account SET note = ''b''') LIKE '23505: Key %hunter2%' AS shown;
-- also under policies
ALTER TABLE owned.account_history ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON owned.account_history TO interlock_clerk;
SET ROLE interlock_clerk;
SELECT owned.detail_of('UPDATE owned.account SET note = ''b''');

-- SEC-5: an index of the history table that computes with the owner's code leaves nothing behind in the session of the writer
SET ROLE interlock_owner;
CREATE TABLE owned.page (id int PRIMARY KEY, a int);
SELECT interlock.enable_history('owned.page');
GRANT SELECT, INSERT ON owned.page TO interlock_clerk;
CREATE FUNCTION owned.set_path(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
    PERFORM set_config('search_path', 'owned', false); RETURN $1; END $$;
DROP INDEX owned.page_history_jsonb_hash_extended_id_idx;
CREATE INDEX ON owned.page_history (owned.set_path(operation));
RESET search_path;
SET ROLE interlock_clerk;
INSERT INTO owned.page VALUES (1);
SHOW search_path;

-- SEC-5: nor does it write as the writer of that role
RESET ROLE;
SELECT interlock.grant_writer('shop', 'interlock_clerk', is_default => true);
SET ROLE interlock_owner;
CREATE FUNCTION owned.show_writer(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
    RAISE NOTICE 'code of % writes as %', current_user, interlock.current_writer(); RETURN $1; END $$;
CREATE INDEX ON owned.page_history (owned.show_writer(operation));
SET ROLE interlock_clerk;
SELECT interlock.current_writer();
INSERT INTO owned.page VALUES (2);
BEGIN;
SELECT interlock.set_writer('shop');
INSERT INTO owned.page VALUES (3);
COMMIT;
SET ROLE interlock_owner;
DROP FUNCTION owned.show_writer CASCADE;
RESET ROLE;
SELECT interlock.revoke_writer('shop', 'interlock_clerk');

-- SEC-5: an administrator who enables markers runs the code on the table as its owner
SET ROLE interlock_owner;
CREATE FUNCTION owned.caller() RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
    IF current_user <> 'interlock_owner' THEN RAISE NOTICE 'planned as another role'; END IF; RETURN true; END $$;
CREATE FUNCTION owned.note_caller() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE NOTICE 'trigger as %', current_user; RETURN NEW; END $$;
CREATE TABLE owned.doc (id int PRIMARY KEY, status int NOT NULL DEFAULT 0, lock_by text);
INSERT INTO owned.doc VALUES (1, 1, 'anna');
CREATE INDEX ON owned.doc (lock_by) WHERE owned.caller();
CREATE TRIGGER aaa BEFORE UPDATE ON owned.doc FOR EACH ROW EXECUTE FUNCTION owned.note_caller();
RESET ROLE;
SELECT interlock.enable_marker('owned.doc', status_column => 'status');
SET ROLE interlock_owner;
SELECT lock_by, lock_until IS NOT NULL AS dated FROM owned.doc;
RESET ROLE;
SELECT interlock.disable_marker('owned.doc');

-- SEC-5: nor does he read for the owner which start another table has
CREATE TABLE hidden (id int PRIMARY KEY);
SELECT interlock.enable_versioning('hidden');
SELECT setval('hidden_version_start', 4711);
REVOKE SELECT ON SEQUENCE hidden_version_start FROM PUBLIC;
SET ROLE interlock_owner;
CREATE TABLE owned.copy (id int PRIMARY KEY, version bigint NOT NULL DEFAULT interlock.first_version('public.hidden_version_start'));
RESET ROLE;
SELECT interlock.enable_versioning('owned.copy');
SELECT last_value, is_called FROM owned.copy_version_start;
DROP TABLE hidden;

-- SEC-5: nor does an administrator run the check of a domain by declaring states
SET ROLE interlock_owner;
CREATE TABLE owned.seen (who name);
GRANT INSERT ON owned.seen TO PUBLIC;
CREATE FUNCTION owned.is_state(value text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN INSERT INTO owned.seen VALUES (current_user); RETURN true; END';
CREATE DOMAIN owned.state AS text CHECK (owned.is_state(VALUE));
CREATE TABLE owned.job (id int PRIMARY KEY, state owned.state);
RESET ROLE;
SELECT interlock.define_transitions('owned.job', 'state', '{"a": ["b"]}', '{a}');
SELECT DISTINCT who FROM owned.seen;

-- SEC-5: nor does the check of a domain in the history, which runs as its owner, find functions by the writer's search_path
SET ROLE interlock_owner;
CREATE FUNCTION owned.is_document(value jsonb) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN length(value::text) > 0; END';
CREATE DOMAIN owned.document AS jsonb CHECK (owned.is_document(VALUE));
CREATE TABLE owned.paper (id int PRIMARY KEY);
SELECT interlock.enable_history('owned.paper');
ALTER TABLE owned.paper_history ALTER row_data TYPE owned.document;
GRANT INSERT ON owned.paper TO interlock_clerk;
RESET ROLE;
CREATE SCHEMA clerk AUTHORIZATION interlock_clerk;
SET ROLE interlock_clerk;
CREATE TABLE clerk.seen (who name);
GRANT USAGE ON SCHEMA clerk TO PUBLIC;
GRANT INSERT ON clerk.seen TO PUBLIC;
CREATE FUNCTION clerk.length(text) RETURNS int LANGUAGE plpgsql AS 'BEGIN INSERT INTO clerk.seen VALUES (current_user); RETURN 1; END';
SET search_path = clerk, pg_catalog;
INSERT INTO owned.paper VALUES (1);
RESET search_path;
SELECT * FROM clerk.seen;
RESET ROLE;
SELECT row_data FROM owned.paper_history;
SET client_min_messages = warning;
DROP SCHEMA clerk CASCADE;
RESET client_min_messages;

-- OPS-1: rows that pg_restore loads pass the checks; those of a function that works for others as the owner do not
SET ROLE interlock_owner;
CREATE TABLE owned.claim (id int, status text) PARTITION BY RANGE (id);
CREATE TABLE owned.claim_1 PARTITION OF owned.claim FOR VALUES FROM (0) TO (100);
SELECT interlock.define_transitions('owned.claim', 'status', '{"new": ["paid"]}', '{new}');
GRANT TRUNCATE ON owned.claim_1 TO interlock_clerk;
CREATE FUNCTION owned.submit(text) RETURNS void SECURITY DEFINER LANGUAGE sql AS 'INSERT INTO owned.claim VALUES (1, $1)';
SET ROLE interlock_clerk;
BEGIN;
TRUNCATE owned.claim_1;
SELECT owned.submit('paid');
ROLLBACK;
SET ROLE interlock_owner;
BEGIN;
TRUNCATE owned.claim_1;
SELECT owned.submit('paid');
ROLLBACK;

-- SEC-1: the condition of a trigger of another role is not evaluated as the owner of the history, unless it can run nothing of that role
CREATE TABLE owned.bill (id int PRIMARY KEY);
SELECT interlock.enable_history('owned.bill');
CREATE FUNCTION owned.pass() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
CREATE FUNCTION owned.known(jsonb) RETURNS boolean LANGUAGE sql AS 'SELECT true';
GRANT TRIGGER ON owned.bill_history TO interlock_clerk;
GRANT INSERT ON owned.bill TO interlock_clerk;
RESET ROLE;
CREATE SCHEMA clerk AUTHORIZATION interlock_clerk;
SET ROLE interlock_clerk;
GRANT USAGE ON SCHEMA clerk TO PUBLIC;
CREATE FUNCTION clerk.climb() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RAISE NOTICE ''as %'', current_user; RETURN true; END';
CREATE DOMAIN clerk.word AS text CHECK (VALUE IS NULL OR clerk.climb());
CREATE VIEW clerk.seen AS SELECT clerk.climb();
GRANT SELECT ON clerk.seen TO PUBLIC;
CREATE FUNCTION clerk.try(condition text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
    EXECUTE format('CREATE TRIGGER x BEFORE INSERT ON owned.bill_history FOR EACH ROW WHEN (%s) EXECUTE FUNCTION owned.pass()', condition);
    INSERT INTO owned.bill VALUES (1);
    RAISE unique_violation USING MESSAGE = 'passed';
EXCEPTION WHEN unique_violation OR insufficient_privilege THEN RETURN sqlerrm; END $$;
SET client_min_messages = warning;
SELECT clerk.try('new.key IS NOT NULL'); -- plans, and says what domains say when they are
SET client_min_messages = notice;
SELECT condition, clerk.try(condition) FROM unnest(ARRAY[
    'clerk.climb()',
    'query_to_xml(''SELECT clerk.climb()'', true, false, '''') IS NOT NULL',
    'table_to_xml(''clerk.seen'', true, false, '''') IS NOT NULL',
    'CAST(new.operation AS clerk.word) IS NOT NULL',
    'CAST(ARRAY[new.operation] AS clerk.word[]) = ''{}''',
    'new.operation = ''insert'' AND pg_trigger_depth() > 0 AND new.changed_at <= now() AND new.changed_by <> current_user',
    'owned.known(new.key)']) condition;
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA clerk, owned CASCADE;
DROP ROLE interlock_owner, interlock_clerk;
