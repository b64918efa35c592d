-- Reservations of escrow counters

CREATE FUNCTION interlock.reserve(
    rel regclass, key text, column_name name, amount numeric, ttl interlock.seconds, holder text = NULL, wait interlock.seconds = '0',
    OUT outcome text, OUT token bigint, OUT expires_at timestamptz)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.reserve(
    rel regclass, key "any", column_name name, amount numeric, ttl interlock.seconds, holder text = NULL, wait interlock.seconds = '0',
    OUT outcome text, OUT token bigint, OUT expires_at timestamptz)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.reserve(regclass, text, name, numeric, interlock.seconds, text, interlock.seconds) IS
'Takes the amount from the escrow counter until expires_at, as for a cart. confirm_reservation makes it a sale. cancel_reservation returns it to the
counter, and so does the sweeper after expires_at.
outcome: reserved; insufficient: the amount does not fit, however open transactions and reservations end; pending: it fits if some of
them return their amounts; not_found. token: for the other functions of reservations. ttl: from now, above zero. holder: a label of at most 255 bytes.
wait: for open transactions that can make the amount fit, not for reservations. The counter keeps room below its maximum for the amount,
so that it can be returned at any time.
Needs the privileges of adjust. Under SERIALIZABLE, under row security, and without shared_preload_libraries the call updates the row itself, under its lock.
Errors: 22023 the amount is not above zero, not finite or has too many digits, or an invalid ttl, holder or wait; 55000 no escrow counters,
or their triggers do not fire, or the key of the table has changed; 25006 read-only transaction; IL004 the row is being edited (under SERIALIZABLE and row security).';
COMMENT ON FUNCTION interlock.reserve(regclass, "any", name, numeric, interlock.seconds, text, interlock.seconds) IS
'As reserve(regclass, text, name, numeric, interlock.seconds, text, interlock.seconds), for a key of another type.';

CREATE FUNCTION interlock.reserve_many(
    items jsonb, ttl interlock.seconds, holder text = NULL, wait interlock.seconds = '0',
    OUT outcome text, OUT token bigint, OUT expires_at timestamptz, OUT short jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.reserve_many(jsonb, interlock.seconds, text, interlock.seconds) IS
'Reserves all items of a cart under one token, or none. items: a jsonb array of at most 1,000 objects with rel, key, column and amount; items of one counter are
added up. outcome: reserved; not_found, insufficient or pending: that of the worst item. short: the items that cannot be reserved, each with its outcome and with what
remains of its counter. Two calls never wait for each other: the counters are taken in one order. Otherwise as reserve. Errors: 22004 null, 22023 items of another shape, and those of reserve.';

CREATE FUNCTION interlock.confirm_reservation(token bigint, amount numeric = NULL, items jsonb = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.confirm_reservation(bigint, numeric, jsonb) IS
'Ends a reservation: the amount is sold when this transaction commits. amount: only so much of a reservation of one counter is sold. items: only these
items of a cart are sold, as in reserve_many. The rest returns to the counters. For members of the role that has reserved. Waits for other transactions that end or extend it. Errors: IL008 it has
expired or ended, or there is none with that token for the caller, 22023 more than was reserved, an item that was not reserved, amount and items together, 55000 no escrow counters, or their triggers do not fire.';

CREATE FUNCTION interlock.cancel_reservation(token bigint) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.cancel_reservation(bigint) IS
'Returns the amounts of a reservation; others can take it when this transaction has committed. False when it has expired or ended, or there is none with
that token for the caller. For members of the role that has reserved, and for the owner of all its tables. Waits for other transactions that end or extend it.
Errors: 55000 the triggers of the escrow counters do not fire.';

CREATE FUNCTION interlock.extend_reservation(token bigint, ttl interlock.seconds) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.extend_reservation(bigint, interlock.seconds) IS
'Moves the deadline of a reservation to ttl from now, and returns it; null when it has expired or ended, or there is none with that token for the caller. For members of the role
that has reserved. Waits for other transactions that end or extend it. Errors: 22023 ttl, 55000 the triggers of the escrow counters do not fire.';

CREATE FUNCTION interlock_internal.may_end_reservation(role_name name, rel regclass) RETURNS boolean
    LANGUAGE c STABLE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.may_end_reservation(name, regclass) IS
'For the view reservations: whether the caller is a member of the role, or the owner of the table.';

CREATE VIEW interlock.reservations WITH (security_barrier) AS
    SELECT c.rel::regclass, CASE WHEN m.reads THEN c.key END AS key, COALESCE(a.attname, c.column_name) AS column_name,
           CASE WHEN m.reads THEN r.amount END AS amount, r.holder, r.role_name AS role,
           CASE WHEN m.may_end THEN r.token END AS token, r.reserved_at, r.expires_at,
           r.expires_at <= clock_timestamp() AS expired
      FROM interlock_internal.escrow_reservation r
      JOIN interlock_internal.escrow_counter c ON c.id = r.counter
      JOIN pg_class t ON t.oid = c.rel::oid
      LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND NOT a.attisdropped
                                         AND a.attnum = interlock_internal.counted_column(c.rel::regclass, c.column_name)
     CROSS JOIN LATERAL (SELECT interlock_internal.may_end_reservation(r.role_name, c.rel::regclass) AS may_end) e
     CROSS JOIN LATERAL (SELECT e.may_end, e.may_end OR interlock_internal.may_read_counter(c.rel::regclass, c.column_name) AS reads) m
     WHERE m.reads OR (SELECT pg_has_role('pg_read_all_stats', 'USAGE'));
GRANT SELECT ON interlock.reservations TO PUBLIC;
COMMENT ON VIEW interlock.reservations IS
'Reservations of escrow counters: those of the caller''s roles and tables, and those of tables of which the caller may read the column and the
key, but not of tables whose rows row security hides from the caller. pg_read_all_stats sees all, without the key and the amount where it may not read them. token: null for those who may not end it. expired: its deadline has passed, and the sweeper has not given it back yet.';

CREATE FUNCTION interlock.escrow_check(
    rel regclass = NULL, OUT rel regclass, OUT key text, OUT column_name name, OUT stored numeric, OUT parts numeric, OUT reserved numeric,
    OUT difference numeric) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.escrow_check(regclass) IS
'Whether the books of the counters of a table, or of all tables, agree. stored: the column of the row; parts: what the committed parts add to it; reserved: what reservations
hold. difference: zero if they agree. Otherwise by how much the value is below the minimum, or with what is reserved above the maximum, or what parts and reservations of a row
that is gone add up to, or by how much shared memory has more than the tables. Null while open transactions change the counter. Everything but rel, key and column_name is null where advise says
that the column has lost its counters. Of tables of which the caller may read the column and the key. As of now, whatever the snapshot. It waits for no transaction that changes counters.';
