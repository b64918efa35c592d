-- Durations

-- The type of every argument that says how long: an interval to which numbers convert, which are seconds. An overload for
-- each type of number would make parameters without a type ambiguous. Columns of tables, views and results are intervals.
-- The functions of the type are in C: for one in LANGUAGE internal, the server compares the names of all its functions, at
-- each value that it reads or writes.
CREATE TYPE interlock.seconds;
CREATE FUNCTION interlock_internal.seconds_in(cstring) RETURNS interlock.seconds
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock_internal.seconds_out(interlock.seconds) RETURNS cstring
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock_internal.seconds_recv(internal, oid, integer) RETURNS interlock.seconds
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock_internal.seconds_send(interlock.seconds) RETURNS bytea
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME';
CREATE TYPE interlock.seconds (
    INPUT = interlock_internal.seconds_in, OUTPUT = interlock_internal.seconds_out,
    RECEIVE = interlock_internal.seconds_recv, SEND = interlock_internal.seconds_send,
    LIKE = interval, CATEGORY = 'T', PREFERRED = false);
COMMENT ON TYPE interlock.seconds IS
'A duration: an interval, or a number of seconds. It is the type of arguments of functions. Columns are of type interval.';
COMMENT ON FUNCTION interlock_internal.seconds_in(cstring) IS
'Input of type seconds: a number of seconds, or an interval. Errors: 22007.';
COMMENT ON FUNCTION interlock_internal.seconds_out(interlock.seconds) IS 'Output of type seconds.';
COMMENT ON FUNCTION interlock_internal.seconds_recv(internal, oid, integer) IS 'Binary input of type seconds, as of interval.';
COMMENT ON FUNCTION interlock_internal.seconds_send(interlock.seconds) IS 'Binary output of type seconds, as of interval.';

CREATE CAST (interval AS interlock.seconds) WITHOUT FUNCTION AS IMPLICIT;
COMMENT ON CAST (interval AS interlock.seconds) IS 'The interval itself.';

-- A number that is no duration, such as NaN, is converted to the longest one. Every function refuses that (22023).
CREATE FUNCTION interlock_internal.to_seconds(smallint) RETURNS interlock.seconds
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'number_to_seconds';
COMMENT ON FUNCTION interlock_internal.to_seconds(smallint) IS 'A number of seconds.';
CREATE CAST (smallint AS interlock.seconds) WITH FUNCTION interlock_internal.to_seconds(smallint) AS IMPLICIT;
COMMENT ON CAST (smallint AS interlock.seconds) IS 'A number of seconds.';
CREATE FUNCTION interlock_internal.to_seconds(integer) RETURNS interlock.seconds
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'number_to_seconds';
COMMENT ON FUNCTION interlock_internal.to_seconds(integer) IS 'A number of seconds.';
CREATE CAST (integer AS interlock.seconds) WITH FUNCTION interlock_internal.to_seconds(integer) AS IMPLICIT;
COMMENT ON CAST (integer AS interlock.seconds) IS 'A number of seconds.';
CREATE FUNCTION interlock_internal.to_seconds(bigint) RETURNS interlock.seconds
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'number_to_seconds';
COMMENT ON FUNCTION interlock_internal.to_seconds(bigint) IS 'A number of seconds.';
CREATE CAST (bigint AS interlock.seconds) WITH FUNCTION interlock_internal.to_seconds(bigint) AS IMPLICIT;
COMMENT ON CAST (bigint AS interlock.seconds) IS 'A number of seconds.';
CREATE FUNCTION interlock_internal.to_seconds(numeric) RETURNS interlock.seconds
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'number_to_seconds';
COMMENT ON FUNCTION interlock_internal.to_seconds(numeric) IS 'A number of seconds.';
CREATE CAST (numeric AS interlock.seconds) WITH FUNCTION interlock_internal.to_seconds(numeric) AS IMPLICIT;
COMMENT ON CAST (numeric AS interlock.seconds) IS 'A number of seconds.';
CREATE FUNCTION interlock_internal.to_seconds(real) RETURNS interlock.seconds
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'number_to_seconds';
COMMENT ON FUNCTION interlock_internal.to_seconds(real) IS 'A number of seconds.';
CREATE CAST (real AS interlock.seconds) WITH FUNCTION interlock_internal.to_seconds(real) AS IMPLICIT;
COMMENT ON CAST (real AS interlock.seconds) IS 'A number of seconds.';
CREATE FUNCTION interlock_internal.to_seconds(double precision) RETURNS interlock.seconds
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'number_to_seconds';
COMMENT ON FUNCTION interlock_internal.to_seconds(double precision) IS 'A number of seconds.';
CREATE CAST (double precision AS interlock.seconds) WITH FUNCTION interlock_internal.to_seconds(double precision) AS IMPLICIT;
COMMENT ON CAST (double precision AS interlock.seconds) IS 'A number of seconds.';
