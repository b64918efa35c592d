-- ADV-1: what advise() finds in the catalog, and that it finds nothing else.
BEGIN;
SELECT * FROM no_plan();
SET client_min_messages = error;
SELECT is_empty('SELECT * FROM interlock.advise()', 'nothing of an empty database');

CREATE FUNCTION advice(rel text, OUT finding text, OUT evidence text, OUT advice text) RETURNS SETOF record LANGUAGE sql AS
    'SELECT a.finding, a.evidence, a.advice FROM interlock.advise() a WHERE a.rel::text = $1';
-- Runs what is advised, and asks again.
CREATE FUNCTION follow(rel text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN SELECT a.advice FROM advice(rel) a LOOP EXECUTE line; END LOOP;
    RETURN QUERY SELECT a.finding FROM advice(rel) a;
END $$;

-- A version-like column
CREATE TABLE orm (id int PRIMARY KEY, "lockVersion" int NOT NULL DEFAULT 0);
CREATE SCHEMA "a b";
CREATE TABLE "a b"."it's" (id int PRIMARY KEY, row_version bigint);
SELECT results_eq($$SELECT * FROM advice('orm')$$, $$VALUES ('updates do not move column "lockVersion": a stale save is not refused', 'the name of the column',
    'SELECT interlock.enable_versioning(''orm'', ''lockVersion'')')$$, 'a version that is not moved');
SELECT is_empty($$SELECT follow('orm')$$, 'the advice cures it');
SELECT is_empty($$SELECT follow('"a b"."it''s"')$$, 'names with quotes');
SELECT is((SELECT count(*) FROM interlock.guards WHERE mechanism = 'versioning'), 2::bigint, 'both are versioned');
CREATE TABLE revision (document int, version int, PRIMARY KEY (document, version));
CREATE TABLE edition (id int PRIMARY KEY, document int, version int, UNIQUE (document, version));
CREATE TABLE line (id int PRIMARY KEY, document int, version int, FOREIGN KEY (document, version) REFERENCES revision);
CREATE TABLE package (id int PRIMARY KEY, version text, optlock uuid);
CREATE TABLE numbered (id int PRIMARY KEY, version int GENERATED ALWAYS AS IDENTITY, row_version int GENERATED ALWAYS AS (1) STORED);
CREATE TEMPORARY TABLE passing (id int PRIMARY KEY, version int);
SELECT interlock.enable_history('orm');
SELECT interlock.disable_history('orm');
SELECT is_empty('SELECT * FROM interlock.advise()', 'versions of documents and packages, and of a history, are others');
ALTER TABLE orm DISABLE TRIGGER USER;
SELECT results_eq($$SELECT * FROM advice('orm')$$,
    $$VALUES ('trigger "zzz_interlock_version" is disabled: updates do not move versions', 'versioning', 'ALTER TABLE orm ENABLE TRIGGER zzz_interlock_version')$$, 'what is wrong with a mechanism, once');
SELECT is_empty($$SELECT follow('orm')$$, 'is cured, too');
DROP TRIGGER zzz_interlock_version ON orm;
SELECT is((SELECT count(*) FROM advice('orm')), 1::bigint, 'a trigger that is gone is one finding');
SELECT is_empty($$SELECT follow('orm')$$, 'and cured');
ALTER TABLE orm ALTER "lockVersion" DROP DEFAULT;
SELECT is((SELECT finding FROM advice('orm')), 'column "lockVersion" has no default: a key that is used again meets old versions', 'a default that is gone');
SELECT is_empty($$SELECT follow('orm')$$, 'is there again');
CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
CREATE TRIGGER zzzz BEFORE UPDATE ON orm FOR EACH ROW EXECUTE FUNCTION late();
SELECT is((SELECT finding FROM advice('orm')), 'trigger "zzzz" fires after trigger "zzz_interlock_version": writes are refused', 'a later trigger');
SELECT is_empty($$SELECT follow('orm')$$, 'gets an earlier name');

-- States
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE TABLE orders (id int PRIMARY KEY, status text NOT NULL CHECK (status IN ('open', 'paid')), "paymentState" varchar(10) CONSTRAINT p CHECK ("paymentState" IN ('a', 'b')), mood_state mood);
SELECT results_eq($$SELECT * FROM advice('orders')$$, $$VALUES
    ('column "mood_state" has a list of states, and may change from each to each', 'type mood', 'its owner calls interlock.define_transitions(''orders'', ''mood_state'', ...), which declares which state may follow which'),
    ('column "paymentState" has a list of states, and may change from each to each', 'constraint "p"', 'its owner calls interlock.define_transitions(''orders'', ''paymentState'', ...), which declares which state may follow which'),
    ('column "status" has a list of states, and may change from each to each', 'constraint "orders_status_check"', 'its owner calls interlock.define_transitions(''orders'', ''status'', ...), which declares which state may follow which')$$,
    'states without transitions');
SELECT interlock.define_transitions('orders', 'status', '{"open": ["paid"]}');
SELECT is((SELECT count(*) FROM advice('orders')), 2::bigint, 'without those that have some');
SELECT interlock.define_transitions('orders', 'paymentState', '{"a": ["b"]}'), interlock.define_transitions('orders', 'mood_state', '{"sad": ["glad"]}');
CREATE TABLE other (id int PRIMARY KEY, status text CHECK (status <> ''), state int CHECK (state > 0), kind text CHECK (kind IN ('a', 'b')),
    from_status text, a int, CHECK (from_status IN ('a', 'b') OR a = 1));
SELECT is_empty('SELECT * FROM interlock.advise()', 'other columns and constraints are none');

-- Locks made by hand
CREATE TABLE document (id int PRIMARY KEY, status int NOT NULL DEFAULT 0 CHECK (status IN (0, 1)), lock_by text, lock_time timestamptz);
CREATE TABLE job (id int PRIMARY KEY, "lockedBy" varchar(20), "lockedAt" timestamp);
CREATE TABLE seat (id int PRIMARY KEY, locked_by int);
SELECT results_eq($$SELECT * FROM advice('document')$$, $$VALUES ('column "lock_by" belongs to a manual lock: other writers need not look at it, and it does not expire; with a marker the program calls lock_row and save_row', 'the name of the column',
    'SELECT interlock.enable_marker(''document'', holder_column => ''lock_by'', time_column => ''lock_time'', status_column => ''status'')')$$, 'a lock made by hand');
SELECT is_empty($$SELECT follow('document')$$, 'is a marker');
SELECT is_empty($$SELECT follow('job')$$, 'under other names');
SELECT results_eq($$SELECT rel::text, settings->>'status_column', settings->>'holder_column', settings->>'time_column' FROM interlock.guards WHERE mechanism = 'marker' ORDER BY 1$$,
    $$VALUES ('document', 'status', 'lock_by', 'lock_time'), ('job', 'lock_status', 'lockedBy', 'lockedAt')$$, 'with these columns');
SELECT is_empty('SELECT * FROM interlock.advise()', 'a holder is a text');

-- The index for sweeps
SELECT interlock.configure('job', '{"marker": {"sweep_index": false}}');
INSERT INTO job SELECT i FROM generate_series(1, 10000) i;
SELECT is_empty('SELECT * FROM interlock.advise()', 'a table that was never analyzed is small');
ANALYZE job;
SELECT results_eq($$SELECT * FROM advice('job')$$, $$VALUES ('no index for sweeps: each one reads the whole table', '10000 rows, by the last ANALYZE',
    'SELECT interlock.configure(''job'', ''{"marker": {"sweep_index": true}}'')')$$, 'a large one without the index');
SELECT is_empty($$SELECT follow('job')$$, 'gets it');

-- Partitions and heirs
CREATE TABLE part (id int PRIMARY KEY, version int, lock_by text, state mood) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10);
CREATE TABLE base (id int, version int);
CREATE TABLE heir () INHERITS (base);
SELECT results_eq($$SELECT rel::text, count(*) FROM interlock.advise() GROUP BY 1 ORDER BY 1$$, $$VALUES ('base', 1::bigint), ('part', 3)$$, 'a table that is part of another is not named');
DROP TABLE part, base, heir;

-- SEC-1: triggers of others
CREATE TABLE forged (id int PRIMARY KEY, version int);
CREATE TRIGGER t AFTER TRUNCATE ON forged EXECUTE FUNCTION interlock_internal.version_trigger('no', 'such', 'arguments');
SELECT results_eq($$SELECT * FROM advice('forged') WHERE finding ~ 'is not as'$$, $$VALUES ('trigger "t" is not as interlock.enable_versioning creates it: writes are refused', 'versioning',
    'the owner of the table drops triggers that no function of the extension has made')$$, 'SEC-1: a trigger that no function of ours makes');
DROP TABLE forged;

-- ADV-2, SEC-5: names and expressions of others are shown and not run
CREATE FUNCTION spy(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RAISE 'is run'; END$$;
CREATE TABLE trap (id int PRIMARY KEY, status text CHECK (status IN ('a', spy('b'))), "version'); DROP TABLE orm; --" int, "x
lock_by" text) WITH (autovacuum_enabled = off);
CREATE INDEX ON trap (spy(status)) WHERE spy(status) IS NOT NULL;
SELECT lives_ok('SELECT * FROM interlock.advise()', 'SEC-5: runs no code of others');
DROP TABLE trap;
CREATE TABLE quoted (id int PRIMARY KEY, "version'""" int);
SELECT is_empty($$SELECT follow('quoted')$$, 'SEC-5: names are quoted in advice');

-- Who sees it
CREATE TABLE mine (id int PRIMARY KEY, version int);
CREATE TABLE theirs (id int PRIMARY KEY, version int);
ALTER TABLE orm DISABLE TRIGGER USER;
CREATE ROLE interlock_anna;
GRANT SELECT (id) ON mine TO interlock_anna;
SET ROLE interlock_anna;
SELECT results_eq('SELECT rel::text FROM interlock.advise()', $$VALUES ('mine')$$, 'tables on which the caller has a privilege');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
