-- ORM-4, SEC-5: advise() reads histories of others; whatever they are, it runs no code of their owners, and
-- finds what there is to find in those of the others
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE ROLE check_anna;
CREATE ROLE check_mallory;
CREATE SCHEMA mallory AUTHORIZATION check_mallory;
CREATE VIEW reused AS SELECT rel, finding FROM interlock.advise() WHERE finding ~ 'used again';
CREATE TABLE annas (id int PRIMARY KEY);
ALTER TABLE annas OWNER TO check_anna;
SELECT interlock.enable_versioning('annas'), interlock.enable_history('annas');
INSERT INTO annas VALUES (1);
DELETE FROM annas;
INSERT INTO annas VALUES (1, 1);
GRANT TRIGGER ON annas, annas_history TO check_mallory;
SELECT rel FROM reused;

SET ROLE check_mallory;
SET search_path = mallory, public;
CREATE FUNCTION trap(value anyelement) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
    IF current_user <> 'check_mallory' THEN RAISE EXCEPTION 'runs with the rights of %', current_user; END IF;
    RETURN 1; END $$;
-- a trigger FROM the history of another role shows nothing of it
CREATE TABLE t (id int PRIMARY KEY);
SELECT interlock.enable_versioning('t');
CREATE CONSTRAINT TRIGGER x AFTER INSERT ON t FROM annas_history FOR EACH ROW
    EXECUTE FUNCTION interlock_internal.history_trigger('', '', '0 microseconds since 2000-01-01 UTC', 'notify off', 'ignore markers', '', '1 entries per whole row', '0 ignored columns', '0 ignored writers', 'id', 'integer');
RESET ROLE;
SELECT rel FROM reused;
SET ROLE check_mallory;
DROP TRIGGER x ON t;

-- a history of his own, with code of his wherever a table can have some
SELECT interlock.enable_history('t');
INSERT INTO t VALUES (1);
DELETE FROM t;
INSERT INTO t VALUES (1, 1);
RESET ROLE;
SELECT rel FROM reused ORDER BY 1;
SET ROLE check_mallory;
CREATE INDEX ON t_history (trap(1), trap(key));
CREATE INDEX ON t_history (id) WHERE trap(1) = 1;
CREATE STATISTICS s ON trap(key), trap(version) FROM t_history;
ALTER TABLE t_history ADD CHECK (trap(1) = 1) NOT VALID;
CREATE RULE r AS ON UPDATE TO t_history DO INSTEAD SELECT trap(1);
RESET ROLE;
SELECT rel FROM reused ORDER BY 1;
-- a policy is not evaluated for those to whom it applies
SET ROLE check_mallory;
GRANT USAGE ON SCHEMA mallory TO check_anna;
GRANT SELECT ON t, t_history TO check_anna;
SET ROLE check_anna;
SELECT rel FROM interlock.advise() WHERE finding ~ 'used again' ORDER BY 1;
SET ROLE check_mallory;
ALTER TABLE t_history ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY p ON t_history USING (trap(1) = 1);
SET ROLE check_anna;
SELECT rel FROM interlock.advise() WHERE finding ~ 'used again' ORDER BY 1;
RESET ROLE;
SELECT rel FROM reused ORDER BY 1;

-- indexes that are not there, or are something else by the same names
SELECT indexrelid::regclass AS by_key, pg_get_indexdef(indexrelid) AS definition FROM pg_index
 WHERE indrelid = 't_history'::regclass AND pg_get_indexdef(indexrelid) ~ 'jsonb_hash' \gset
SET ROLE check_mallory;
DROP INDEX :by_key;
CREATE INDEX :by_key ON t_history (trap(key), id);
RESET ROLE;
SELECT rel FROM reused ORDER BY 1;
SET ROLE check_mallory;
DROP INDEX :by_key;
:definition;
RESET ROLE;
SELECT rel FROM reused ORDER BY 1;

-- entries that no trigger has written: keys and operations of any length, nulls in columns that seem to have none
SET ROLE check_mallory;
INSERT INTO t_history (key, version, changed_at, changed_by, operation, row_data, transaction, command)
    SELECT k, v, now(), '', o, '{}', n, n FROM (VALUES (1, '"x"', 'delete', 1), (2, '"x"', 'insert', 1), (3, to_jsonb(repeat('x', 100000)), 'delete', 1),
        (4, to_jsonb(repeat('x', 100000)), 'insert', 1), (5, '"y"', repeat('delete', 100000), 1), (6, '"y"', 'insert', 1), (7, '"z"', 'delete', NULL),
        (8, '"z"', 'insert', NULL), (9, '[]', '', -9223372036854775808), (10, '[]', 'insert', 9223372036854775807)) e (n, k, o, v);
DO $$ BEGIN
    ALTER TABLE t_history ALTER key DROP NOT NULL, ALTER operation DROP NOT NULL, ALTER changed_at DROP NOT NULL;
    INSERT INTO t_history (changed_by, row_data, version, transaction, command) VALUES ('', '{}', 1, 1, 1);
    IF current_setting('server_version_num')::int >= 180000 THEN
        EXECUTE 'ALTER TABLE t_history ADD NOT NULL key NOT VALID, ADD NOT NULL operation NOT VALID, ADD NOT NULL changed_at NOT VALID';
    ELSE
        DELETE FROM t_history WHERE key IS NULL;
        ALTER TABLE t_history ALTER key SET NOT NULL, ALTER operation SET NOT NULL, ALTER changed_at SET NOT NULL;
    END IF;
END $$;
RESET ROLE;
SELECT * FROM reused ORDER BY 1;

-- a table of other columns or types, and what is no table
SET ROLE check_mallory;
ALTER TABLE t_history RENAME version TO v;
ALTER TABLE t_history ADD version bigint;
RESET ROLE;
SELECT rel FROM reused ORDER BY 1;
SET ROLE check_mallory;
CREATE DOMAIN trapped AS jsonb CHECK (trap(VALUE) = 1);
CREATE TABLE other (id bigint, key trapped, version text, changed_at timestamptz, writer text, changed_by text, operation text, row_data jsonb,
    changed text[], before jsonb, transaction bigint, command bigint, writer_from text, context jsonb, builds_on bigint, distance integer, row_hash bigint);
INSERT INTO other VALUES (1, '{}', 'v', now(), '', '', 'insert', '{}', '{}', '{}', 1, 1, '');
CREATE VIEW seen AS SELECT trap(1);
CREATE TABLE parts (LIKE t_history) PARTITION BY RANGE (id);
CREATE TABLE versioned (id int PRIMARY KEY);
SELECT interlock.enable_versioning('versioned');
CREATE CONSTRAINT TRIGGER x1 AFTER INSERT ON versioned FROM other FOR EACH ROW EXECUTE FUNCTION interlock_internal.history_trigger();
CREATE CONSTRAINT TRIGGER x2 AFTER INSERT ON versioned FROM seen FOR EACH ROW EXECUTE FUNCTION interlock_internal.history_trigger('{', 'x', '', '');
CREATE CONSTRAINT TRIGGER x3 AFTER INSERT ON versioned FROM parts FOR EACH ROW EXECUTE FUNCTION interlock_internal.history_trigger('-1', '', '0', 'notify off', 'ignore markers', '', '1 entries per whole row', '9999 ignored columns', '0 ignored writers', 'id', 'integer');
CREATE CONSTRAINT TRIGGER x4 AFTER INSERT ON versioned FROM other FOR EACH ROW
    EXECUTE FUNCTION interlock_internal.history_trigger('', '', '0 microseconds since 2000-01-01 UTC', 'notify off', 'ignore markers', '', '1 entries per whole row', '0 ignored columns', '0 ignored writers', 'id', 'integer');
RESET ROLE;
SELECT rel FROM reused ORDER BY 1;

-- a trigger on the table of another role hides what its history shows, and refuses all writes; the finding is that.
-- Its advice does not give the history to the role that made the trigger, nor a table of that role to the owner.
SET ROLE check_mallory;
CREATE CONSTRAINT TRIGGER zzzzz AFTER INSERT ON annas FROM other FOR EACH ROW
    EXECUTE FUNCTION interlock_internal.history_trigger('', '', '0 microseconds since 2000-01-01 UTC', 'notify off', 'ignore markers', '', '1 entries per whole row', '0 ignored columns', '0 ignored writers', 'id', 'integer');
RESET ROLE;
SELECT finding, advice FROM interlock.advise() WHERE rel = 'annas'::regclass AND finding !~ 'gone';
INSERT INTO annas VALUES (2);
DROP TRIGGER zzzzz ON annas;
SELECT rel FROM reused ORDER BY 1;

RESET search_path;
DROP VIEW reused;
DROP TABLE annas, annas_history;
DROP OWNED BY check_mallory, check_anna CASCADE;
DROP ROLE check_mallory, check_anna;
-- triggers of one name on several of the tables that one is a partition of: those of statements are not cloned
CREATE TABLE upper_part (id int, k int, version bigint NOT NULL DEFAULT 1) PARTITION BY RANGE (k);
CREATE TABLE middle_part PARTITION OF upper_part FOR VALUES FROM (0) TO (100) PARTITION BY RANGE (k);
CREATE TABLE lower_part PARTITION OF middle_part (PRIMARY KEY (id)) FOR VALUES FROM (0) TO (10);
CREATE FUNCTION of_parts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
SELECT interlock.enable_versioning('lower_part');
CREATE TRIGGER zzzz_x BEFORE INSERT OR UPDATE ON middle_part FOR EACH ROW EXECUTE FUNCTION of_parts();
CREATE TRIGGER zzzz_x BEFORE UPDATE ON upper_part FOR EACH STATEMENT EXECUTE FUNCTION of_parts();
SELECT rel, severity, finding, advice FROM interlock.advise() WHERE rel = 'lower_part'::regclass;
DROP TABLE upper_part;
DROP FUNCTION of_parts;
