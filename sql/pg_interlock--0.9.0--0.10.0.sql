\echo Use "ALTER EXTENSION pg_interlock UPDATE TO '0.10.0'" to load this file. \quit

-- A preloaded library stays until the server restarts.
SELECT interlock_internal.require_library('0.10.0');

-- Versions.

-- Transitions.

-- Markers.

-- Leases.

-- Key locks.

-- Idempotency.

-- Ownership and history.

-- What spans concepts.
