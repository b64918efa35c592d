-- Oids and names that the server gives to no table or column.
\set VERBOSITY terse
CREATE ROLE interlock_guesser;
CREATE TABLE t (id int PRIMARY KEY, v bigint, status text);
CREATE VIEW a_view AS SELECT * FROM t;
CREATE MATERIALIZED VIEW a_matview AS SELECT 1 AS id;
CREATE TYPE a_row AS (id int);
CREATE SEQUENCE a_sequence;

-- Calls every function whose first argument is a table, and says how that ends.
CREATE FUNCTION argument_of(type oid) RETURNS text LANGUAGE sql RETURN CASE type::regtype::text
    WHEN '"any"' THEN '1' WHEN 'integer' THEN '1' WHEN 'bigint' THEN '1' WHEN 'boolean' THEN 'true' WHEN 'text[]' THEN $$'{a}'::text[]$$
    WHEN 'name[]' THEN $$'{status}'::name[]$$ WHEN 'regclass' THEN $$'t'::regclass$$ WHEN 'regprocedure' THEN $$'jsonb_concat(jsonb,jsonb)'::regprocedure$$
    ELSE format('%L::%s', CASE type::regtype::text WHEN 'jsonb' THEN '{}' WHEN 'interlock.seconds' THEN '1 s' WHEN 'timestamp with time zone' THEN 'now'
        WHEN 'name' THEN 'status' ELSE 'x' END, type::regtype) END;
CREATE FUNCTION outcome_of(command text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
    EXECUTE command; RETURN 'passed';
EXCEPTION WHEN OTHERS THEN RETURN sqlstate; END $$;
-- Of advise() the plan stays: to plan it takes ten times as long as to run it.
CREATE FUNCTION outcome_of_advise(rel oid) RETURNS text LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$ BEGIN
    PERFORM FROM interlock.advise(rel::regclass); RETURN 'passed';
EXCEPTION WHEN OTHERS THEN RETURN sqlstate; END $$;
CREATE FUNCTION outcomes(rel oid) RETURNS text LANGUAGE sql BEGIN ATOMIC
    SELECT string_agg(DISTINCT outcome, ' ' ORDER BY outcome) FROM (
        SELECT CASE proname WHEN 'advise' THEN outcome_of_advise(rel) ELSE outcome_of(format('SELECT interlock.%I(%s::oid::regclass%s)', proname, rel, (
            SELECT coalesce(string_agg(', ' || argument_of(type), '' ORDER BY n), '')
              FROM unnest(proargtypes) WITH ORDINALITY argument (type, n) WHERE n > 1))) END AS outcome
          FROM pg_proc WHERE pronamespace = 'interlock'::regnamespace AND proargtypes[0] = 'regclass'::regtype) called;
END;

-- OPS-11: nothing is locked that is not there. A lock that excludes readers would be written to the WAL, with a transaction id.
SET ROLE interlock_guesser;
BEGIN;
SELECT oid, outcomes(oid) FROM unnest('{0,1,999999,4294967295}'::oid[]) oid;
SELECT pg_current_xact_id_if_assigned();
COMMIT;
RESET ROLE;
BEGIN;
SELECT oid, outcomes(oid) FROM unnest('{0,1,999999,4294967295}'::oid[]) oid;
SELECT pg_current_xact_id_if_assigned();
COMMIT;
SELECT interlock.disable_versioning(0::oid::regclass);
-- nor a table of the system
SELECT rel, outcomes(rel) FROM unnest('{pg_class,pg_database,pg_stat_activity,information_schema.sql_features,pg_toast.pg_toast_1255}'::regclass[]) rel;
BEGIN;
SAVEPOINT s;
SELECT interlock.disable_versioning('pg_attribute');
ROLLBACK TO s;
SELECT pg_current_xact_id_if_assigned();
COMMIT;
-- nor what is no table
SELECT rel, outcomes(rel) FROM unnest('{a_view,a_matview,a_row,a_sequence,t_pkey}'::regclass[]) rel;
SET ROLE interlock_guesser;
SELECT rel, outcomes(rel) FROM unnest('{t,a_view,a_sequence,t_pkey,pg_class,pg_authid}'::regclass[]) rel;

-- OPS-13: what is no sequence of a version column starts at 1
SELECT interlock.first_version(0);
SELECT interlock.first_version(1);
SELECT interlock.first_version(999999);
SELECT interlock.first_version('pg_catalog.pg_class');
SELECT interlock.first_version('public.a_view');
SELECT interlock.first_version('public.a_sequence');
RESET ROLE;
SELECT interlock.first_version('public.t_pkey');

-- names that no column has
SELECT interlock.enable_versioning('t', '');
SELECT interlock.enable_versioning('t', 'ctid');
SELECT interlock.enable_versioning('t', 'v', '{""}');
SELECT interlock.enable_versioning('t', 'v', '{tableoid}');
SELECT interlock.enable_marker('t', status_column => '');
SELECT interlock.enable_marker('t', holder_column => 'xmin');
SELECT interlock.define_transitions('t', '', '{}');
SELECT interlock.define_transitions('t', 'cmax', '{}');
SELECT interlock.drop_transitions('t', '');
SELECT interlock.require_lease('t', '{}');
SELECT interlock.require_lease('t', '{ctid}');
SELECT interlock.require_lease('t', columns => '{""}');
SELECT interlock.own_columns('t', 'w', '{""}');
SELECT interlock.own_columns('t', 'w', '{xmax}');
SELECT interlock.share_columns('t', '{""}');
SELECT interlock.release_columns('t', '{""}');
SELECT interlock.group_columns('t', '{"",ctid}');
SELECT interlock.enable_versioning('t', 'v');
INSERT INTO t (id) VALUES (1);
SELECT interlock.versioned_update('t', 1, 1, '{"": 1}');
SELECT interlock.versioned_update('t', 1, 1, '{"ctid": "(0,1)"}');
SELECT interlock.versioned_update('t', '{"": 1}', 1, '{}');

DROP FUNCTION outcomes, outcome_of_advise, outcome_of, argument_of;
DROP VIEW a_view; DROP MATERIALIZED VIEW a_matview; DROP TYPE a_row; DROP SEQUENCE a_sequence; DROP TABLE t;
DROP ROLE interlock_guesser;
