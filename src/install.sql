\echo Use "CREATE EXTENSION pg_interlock" to load this file. \quit

-- The schema may have been there before (src/install.cpp).
CREATE FUNCTION interlock.check_schema() RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
SELECT interlock.check_schema();
DROP FUNCTION interlock.check_schema();

GRANT USAGE ON SCHEMA interlock TO PUBLIC;
COMMENT ON SCHEMA interlock IS 'pg_interlock: keeps concurrent writers from hurting each other''s data';

-- Every verb that takes a key exists twice: for text, which also takes parameters that a driver sends without
-- a type, and for a value of any other type (bigint, uuid, ...; a jsonb object for composite keys).
