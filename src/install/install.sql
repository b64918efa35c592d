\echo Use "CREATE EXTENSION pg_interlock" to load this file. \quit

-- What no user calls or reads by name. The statement fails if the schema is there: it would be that of somebody else.
CREATE SCHEMA interlock_internal;

-- Schema interlock may have been there before (install/install.cpp).
CREATE FUNCTION interlock_internal.check_schemas() RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
SELECT interlock_internal.check_schemas();
DROP FUNCTION interlock_internal.check_schemas();

-- Owners of tables name trigger functions when they enable protection or restore a dump.
GRANT USAGE ON SCHEMA interlock, interlock_internal TO PUBLIC;
COMMENT ON SCHEMA interlock_internal IS
'Trigger functions of pg_interlock, functions that its views call, and tables that only the server uses. Its functions of schema
interlock are what applications call.';
COMMENT ON SCHEMA interlock IS 'pg_interlock: prevents lost updates and other write conflicts inside the server';

CREATE FUNCTION interlock.version(OUT library text, OUT sql text)
    LANGUAGE c STABLE AS 'MODULE_PATHNAME', 'interlock_version';
COMMENT ON FUNCTION interlock.version() IS
'The version of the library in this session, and that of the extension''s objects in this database. They differ between the
installation of another version and ALTER EXTENSION pg_interlock UPDATE.';

CREATE FUNCTION interlock_internal.require_library(version text) RETURNS void
    LANGUAGE c STABLE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.require_library(text) IS
'Called by scripts that upgrade. Errors: 55000 when the library of this session is older than that, 22023 when it is no version.';

-- Every verb that takes a key exists twice: for text, which also takes parameters that a driver sends without
-- a type, and for a value of any other type (bigint, uuid, ...; a jsonb object for composite keys).
