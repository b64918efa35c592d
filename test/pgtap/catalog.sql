-- What every object of the extension owes its users, whatever its concept.
BEGIN;
SELECT plan(16);

-- The extension's own objects, not those that come with them (row types, indexes).
CREATE TEMP VIEW objects AS
SELECT d.classid, d.objid, o.type, o.schema, o.identity
FROM pg_depend d
    JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
    CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) o
WHERE e.extname = 'pg_interlock' AND d.deptype = 'e'
    AND NOT (d.classid = 'pg_type'::regclass
        AND (SELECT t.typrelid <> 0 AND c.relkind <> 'c' OR t.typelem <> 0 AND t.typlen = -1
             FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
             WHERE t.oid = d.objid));

SELECT isnt_empty('SELECT * FROM objects', 'the extension has objects');

SELECT is_empty(
    $$SELECT type, identity FROM objects WHERE obj_description(objid, classid::regclass::name) IS NULL$$,
    'every object has a comment');

SELECT is_empty(
    $$SELECT type, identity FROM objects WHERE schema NOT IN ('interlock', 'interlock_internal')$$,
    'everything lives in schema interlock or interlock_internal');

-- OPS-15: \df interlock.* is the API. What calls a function of ours depends on it: a view (its rule), a function in SQL.
CREATE TEMP VIEW functions AS
SELECT o.schema, p.proname, p.oid::regprocedure AS function, p.prorettype = 'trigger'::regtype AS is_trigger,
    (SELECT array_agg(DISTINCT d.classid::regclass::text)
     FROM pg_depend d JOIN objects caller ON (caller.classid, caller.objid) = (d.classid, d.objid)
        OR d.classid = 'pg_rewrite'::regclass AND caller.objid = (SELECT ev_class FROM pg_rewrite r WHERE r.oid = d.objid)
     WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid AND d.deptype = 'n' AND d.classid <> 'pg_trigger'::regclass) AS callers
FROM objects o JOIN pg_proc p ON o.classid = 'pg_proc'::regclass AND o.objid = p.oid;

SELECT is_empty(
    $$SELECT function FROM functions WHERE schema = 'interlock' AND is_trigger$$,
    'OPS-15: no trigger function is in schema interlock');

SELECT is_empty(
    $$SELECT function FROM functions WHERE schema = 'interlock' AND 'pg_rewrite' = ANY (callers)$$,
    'OPS-15: nor a function that a view of the extension calls');

SELECT is_empty(
    $$SELECT function FROM functions
      WHERE schema = 'interlock_internal' AND NOT is_trigger AND callers IS NULL
          AND proname NOT IN ('wake_sweeper', 'note_lease_store', 'require_library') -- install and upgrade scripts call them
          AND proname <> 'changes_parent' -- in WHEN of the triggers of guard_children
          AND proname NOT IN ('history_key_of', 'history_row') -- in statements of functions that read a history$$,
    'OPS-15: each function of interlock_internal is called by a trigger, a view or a function of the extension');

SELECT is_empty(
    $$SELECT type, identity FROM objects WHERE schema = 'interlock_internal' AND type IN ('table', 'sequence', 'view')
          AND has_table_privilege('public', objid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')$$,
    'OPS-15: users can do nothing with the tables and views of interlock_internal');

SELECT is(
    (SELECT string_agg(n.nspname || ': ' || a.privilege_type, ', ' ORDER BY n.nspname)
     FROM pg_namespace n CROSS JOIN aclexplode(n.nspacl) a WHERE n.nspname LIKE 'interlock%' AND a.grantee <> n.nspowner),
    'interlock: USAGE, interlock_internal: USAGE', 'SEC-11: only the owner creates objects in either schema');

SELECT is_empty(
    $$SELECT o.identity
      FROM objects o JOIN pg_proc p ON o.classid = 'pg_proc'::regclass AND o.objid = p.oid
      WHERE p.prosecdef AND NOT EXISTS (
          SELECT FROM unnest(p.proconfig) setting WHERE setting LIKE 'search_path=%')$$,
    'no function with its owner''s rights leaves the search_path open');

SELECT is_empty(
    $$SELECT o.identity, n.name
      FROM objects o
          CROSS JOIN LATERAL (
              SELECT unnest(proargnames) FROM pg_proc WHERE o.classid = 'pg_proc'::regclass AND oid = o.objid
              UNION ALL
              SELECT attname FROM pg_attribute
              WHERE attrelid = CASE o.classid WHEN 'pg_class'::regclass THEN o.objid
                                              WHEN 'pg_type'::regclass THEN (SELECT typrelid FROM pg_type WHERE oid = o.objid) END
                  AND NOT attisdropped) n(name)
      WHERE quote_ident(n.name) <> n.name$$,
    'no argument and no column needs quotes');

-- OPS-15: one word for one thing
CREATE TEMP VIEW arguments AS
SELECT p.oid::regprocedure AS function, p.proname, a.name, a.mode, a.n, format_type(a.type, NULL) AS type
FROM pg_proc p
    CROSS JOIN LATERAL unnest(p.proargnames, coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargmodes) WITH ORDINALITY a (name, type, mode, n)
WHERE p.pronamespace = 'interlock'::regnamespace;

SELECT is_empty(
    $$SELECT p.oid::regprocedure FROM pg_proc p
      WHERE p.pronamespace = 'interlock'::regnamespace AND (p.pronargs > 0 AND p.proargnames IS NULL OR '' = ANY (p.proargnames))$$,
    'OPS-15: every argument has a name');

SELECT is_empty(
    $$SELECT function, name, type FROM arguments JOIN (VALUES ('rel', '{regclass}'::text[]), ('changes', '{jsonb}'), ('outcome', '{text}'), ('holder', '{text}'),
          ('token', '{bigint}'), ('reason', '{text}'), ('scope', '{text}'), ('expires_at', '{timestamp with time zone}'),
          ('ttl', '{interlock.seconds}'), ('wait', '{interlock.seconds}')) one (name, types) USING (name)
      WHERE type <> ALL (types)$$,
    'OPS-15: what has one name has one type');

SELECT is_empty(
    $$SELECT function, name FROM arguments WHERE name IN ('timeout', 'max_wait', 'lock_timeout', 'lease_time', 'expires', 'row_key', 'table_name')$$,
    'OPS-15: nor another name for the same');

SELECT is_empty(
    $$SELECT function FROM arguments WHERE name = 'outcome' AND EXISTS (
          SELECT FROM arguments before WHERE before.function = arguments.function AND before.mode = 'o' AND before.n < arguments.n)
          AND proname <> 'versioned_update_many' -- a row for each key, which comes first$$,
    'OPS-15: the outcome is the first column of a result');

SELECT is_empty(
    $$SELECT DISTINCT proname FROM arguments v
      WHERE name = 'key' AND coalesce(mode, 'i') = 'i' AND EXISTS (SELECT FROM arguments rel WHERE rel.function = v.function AND rel.name = 'rel')
          AND proname !~ '^try_' AND NOT EXISTS (SELECT FROM pg_proc t WHERE t.pronamespace = 'interlock'::regnamespace AND t.proname = 'try_' || v.proname)
          AND proname NOT IN (SELECT name FROM (VALUES
              ('lock_row', 'asks for what another may have, and answers'), ('reserve', 'likewise'),
              ('touch_row', 'prolongs: the new deadline or null'),
              ('unlock_row', 'releases: whether it was held'),
              ('release_values', 'releases: whether it was held'),
              ('force_unlock_row', 'ends the marker of the current holder'), ('take_over_row', 'likewise'),
              ('save_row', 'acts under a claim: raises when it is lost'),
              ('hand_over_row', 'acts under a claim: raises when it is lost'),
              ('delete_row', 'acts under a claim: raises when it is lost'),
              ('assert_version', 'an assertion: raises when it does not hold'),
              ('update_with_retry', 'tries again, and answers'),
              ('set_escrow', 'waits for all others, so nothing can be in its way'),
              ('fold_escrow', 'changes no value'),
              ('row_lock_of', 'reads'), ('row_history', 'reads'), ('row_as_of', 'reads'), ('escrow_value', 'reads'), ('next_states', 'reads'),
              ('require_lease', 'configures'), ('unrequire_lease', 'configures')) without_twin (name, reason))$$,
    'OPS-15: a function that changes a row has a twin that answers');

SELECT is_empty(
    $$SELECT conrelid::regclass, conname FROM pg_constraint
      WHERE connamespace IN ('interlock'::regnamespace, 'interlock_internal'::regnamespace) AND pg_get_constraintdef(oid) ~ '''[a-z_,{}]*[A-Z][A-Za-z_,{}]*'''$$,
    'OPS-15: statuses are lower case');

SELECT * FROM finish();
ROLLBACK;
