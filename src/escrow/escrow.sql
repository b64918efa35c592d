-- Escrow counters

CREATE SEQUENCE interlock_internal.escrow_counter_id;
REVOKE ALL ON SEQUENCE interlock_internal.escrow_counter_id FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('interlock_internal.escrow_counter_id', '');

COMMENT ON SEQUENCE interlock_internal.escrow_counter_id IS
'Numbers of escrow counters.';

CREATE TYPE interlock_internal.counted_table;
CREATE FUNCTION interlock_internal.counted_table_in(cstring) RETURNS interlock_internal.counted_table
    LANGUAGE c STABLE STRICT AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock_internal.counted_table_out(interlock_internal.counted_table) RETURNS cstring
    LANGUAGE c STABLE STRICT AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock_internal.counted_table_recv(internal) RETURNS interlock_internal.counted_table
    LANGUAGE c STABLE STRICT AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock_internal.counted_table_send(interlock_internal.counted_table) RETURNS bytea
    LANGUAGE c STABLE STRICT AS 'MODULE_PATHNAME';
CREATE TYPE interlock_internal.counted_table (
    INPUT = interlock_internal.counted_table_in, OUTPUT = interlock_internal.counted_table_out,
    RECEIVE = interlock_internal.counted_table_recv, SEND = interlock_internal.counted_table_send, LIKE = oid);
COMMENT ON TYPE interlock_internal.counted_table IS
'A table by name, as regclass; none where no table has the name.';
COMMENT ON FUNCTION interlock_internal.counted_table_in(cstring) IS 'Input of type counted_table.';
COMMENT ON FUNCTION interlock_internal.counted_table_out(interlock_internal.counted_table) IS 'Output of type counted_table.';
COMMENT ON FUNCTION interlock_internal.counted_table_recv(internal) IS 'Binary input of type counted_table.';
COMMENT ON FUNCTION interlock_internal.counted_table_send(interlock_internal.counted_table) IS 'Binary output of type counted_table.';
CREATE CAST (interlock_internal.counted_table AS oid) WITHOUT FUNCTION AS IMPLICIT;
COMMENT ON CAST (interlock_internal.counted_table AS oid) IS 'For the index.';
CREATE CAST (interlock_internal.counted_table AS regclass) WITHOUT FUNCTION;
COMMENT ON CAST (interlock_internal.counted_table AS regclass) IS 'For views.';

CREATE TABLE interlock_internal.escrow_counter (
    id bigint NOT NULL,
    rel interlock_internal.counted_table NOT NULL,
    column_name name NOT NULL,
    key text COLLATE "C" NOT NULL,
    CONSTRAINT escrow_counter_pkey PRIMARY KEY (id),
    CONSTRAINT escrow_counter_name UNIQUE (rel, column_name, key));
REVOKE ALL ON TABLE interlock_internal.escrow_counter FROM PUBLIC;

CREATE FUNCTION interlock_internal.counted_table_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE ALL ON FUNCTION interlock_internal.counted_table_trigger() FROM PUBLIC;
COMMENT ON FUNCTION interlock_internal.counted_table_trigger() IS
'Leaves out the counters of tables that are not there, when a dump is restored.';
CREATE TRIGGER zzz_interlock_counted_table BEFORE INSERT ON interlock_internal.escrow_counter
    FOR EACH ROW EXECUTE FUNCTION interlock_internal.counted_table_trigger();
ALTER TABLE interlock_internal.escrow_counter ENABLE ALWAYS TRIGGER zzz_interlock_counted_table;
COMMENT ON TRIGGER zzz_interlock_counted_table ON interlock_internal.escrow_counter IS 'See counted_table_trigger.';
-- A table that was dropped would be dumped as its oid, which may be that of another table in the copy.
SELECT pg_catalog.pg_extension_config_dump('interlock_internal.escrow_counter',
    'WHERE EXISTS (SELECT FROM pg_catalog.pg_class t WHERE t.oid = rel)');
COMMENT ON TABLE interlock_internal.escrow_counter IS
'The rows and columns that are changed by parts. column_name: the name that the column had when enable_escrow was called last. key: the values of
the columns that were the table''s key then. An id is never used again.';

CREATE SEQUENCE interlock_internal.escrow_part_number INCREMENT BY 1024;
REVOKE ALL ON SEQUENCE interlock_internal.escrow_part_number FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('interlock_internal.escrow_part_number', '');
COMMENT ON SEQUENCE interlock_internal.escrow_part_number IS
'Numbers of parts of escrow counters: a session takes 1,024 at once.';

CREATE TABLE interlock_internal.escrow_part (
    counter bigint NOT NULL,
    number bigint NOT NULL,
    amount numeric NOT NULL,
    reserved numeric) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE UNIQUE INDEX escrow_part_counter ON interlock_internal.escrow_part (counter, number);
ALTER TABLE interlock_internal.escrow_part REPLICA IDENTITY USING INDEX escrow_part_counter;
REVOKE ALL ON TABLE interlock_internal.escrow_part FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('interlock_internal.escrow_part',
    'WHERE counter IN (SELECT c.id FROM interlock_internal.escrow_counter c JOIN pg_catalog.pg_class t ON t.oid = c.rel)');
COMMENT ON TABLE interlock_internal.escrow_part IS
'What transactions have added to counters, or taken from them, and no fold has added to the row yet. reserved: what they have added to
reservations, or taken from them. number: by which a subscriber finds the part, nearly in the order in which they came.';

CREATE TABLE interlock_internal.escrow_reservation (
    token bigint NOT NULL,
    counter bigint NOT NULL,
    amount numeric NOT NULL,
    expires_at timestamptz NOT NULL,
    reserved_at timestamptz NOT NULL,
    role_name name NOT NULL,
    holder text,
    rows integer NOT NULL,
    CONSTRAINT escrow_reservation_pkey PRIMARY KEY (token, counter));
CREATE INDEX escrow_reservation_counter ON interlock_internal.escrow_reservation (counter);
CREATE INDEX escrow_reservation_expires_at ON interlock_internal.escrow_reservation (expires_at);
REVOKE ALL ON TABLE interlock_internal.escrow_reservation FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('interlock_internal.escrow_reservation',
    'WHERE counter IN (SELECT c.id FROM interlock_internal.escrow_counter c JOIN pg_catalog.pg_class t ON t.oid = c.rel)');
COMMENT ON TABLE interlock_internal.escrow_reservation IS
'What was taken from counters until a deadline: a row for each counter of a reservation. rows: how many it was made with. Who deletes a row has ended
it.';

CREATE FUNCTION interlock_internal.escrow_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.escrow_trigger() IS
'Keeps plain writes of a column with escrow counters within its limits. Created by enable_escrow; arguments: the column, minimum, maximum,
plain_updates, fold_moves_version, notify, the numbers of the column and of those of the key, and the names of the latter.';

CREATE FUNCTION interlock_internal.escrow_truncate_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.escrow_truncate_trigger() IS
'Ends the escrow counters of all rows of the table. Created by enable_escrow; arguments: the column, the numbers of the
column and of those of the key, and the names of the latter.';

CREATE FUNCTION interlock_internal.escrow_entry(
    counter bigint, OUT inf bigint, OUT sup bigint, OUT folded_at timestamptz, OUT changed_at timestamptz)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.escrow_entry(bigint) IS
'For the view escrow: what shared memory has of a counter, in the smallest steps of its column. Null where it has nothing, and for a counter that the caller
may not read; pg_read_all_stats sees the times.';

CREATE FUNCTION interlock_internal.may_read_counter(rel regclass, column_name name) RETURNS boolean
    LANGUAGE c STABLE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.may_read_counter(regclass, name) IS
'For the views escrow and reservations: whether the caller may read the column, and the key by which its counters go.';

CREATE FUNCTION interlock_internal.counted_column(rel regclass, column_name name) RETURNS smallint
    LANGUAGE c STABLE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.counted_column(regclass, name) IS
'For the views escrow and reservations: the number of the column whose counters the journal has under that name. Null where it is gone.';

CREATE FUNCTION interlock.enable_escrow(
    rel regclass, column_name name, minimum numeric = '0', maximum numeric = NULL, plain_updates text = 'reject',
    fold_moves_version boolean = false, notify text = 'off') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.enable_escrow(regclass, name, numeric, numeric, text, boolean, text) IS
'Makes the column an escrow counter in each row: adjust changes it without waiting for the commits of others, and it never leaves the limits
in any snapshot. For the owner of the table. The column is smallint, integer, bigint or numeric(p, s) with at most 18 digits, NOT NULL, and in no key
or unique index. plain_updates: an UPDATE that changes the column is refused (reject), or taken as a change by the
difference (delta: for SET c = c - 1). fold_moves_version: whether folding parts into the row moves its version. notify: on sends {table, column} on
channel interlock_escrow when a transaction that has returned something to a counter commits, full {table, key, column}. Calling it again changes the settings, and makes the counters go
by the names and the key that the table has now; all parts are added to the rows before.
Waits for all transactions that adjust. Errors: 42501 not the owner, 42804 type, 22023 limits, plain_updates or notify, 0A000 a partitioned, temporary or
unlogged table or a key of another type than integer, uuid or text, 55000 a value outside of the limits, the column is used otherwise, or
there are reservations and the table has got another key.';

CREATE FUNCTION interlock.disable_escrow(rel regclass, column_name name) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.disable_escrow(regclass, name) IS
'Adds all parts to the rows and removes the triggers. For the owner of the table. Waits for all transactions that adjust.
Errors: 42501 not the owner, 55000 the column has no escrow counters, or reservations, or no unique index is over the columns of the key any more.';

CREATE FUNCTION interlock.adjust(
    rel regclass, key text, column_name name, delta numeric, wait interlock.seconds = '0', OUT remaining numeric)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.adjust(
    rel regclass, key "any", column_name name, delta numeric, wait interlock.seconds = '0', OUT remaining numeric)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.adjust(regclass, text, name, numeric, interlock.seconds) IS
'Changes the counter by delta, and returns what is left for certain: the value if all open transactions that take commit, and those that
return do not. Needs what UPDATE ... SET column = column + delta WHERE key = ... needs. key: the table''s primary key, else its narrowest unique
key. wait: for transactions of others whose end can make it fit. Under SERIALIZABLE, row security, and without shared_preload_libraries the row itself is changed, under its
lock. Errors: IL012 not enough left, or not enough room below the maximum, P0002 no such row, 22023 delta is zero, not finite or has too many
digits, 55000 no escrow counters, or their triggers do not fire, or the table has got another key, 25006 read-only transaction, IL004 being edited (under
SERIALIZABLE and row security).';
COMMENT ON FUNCTION interlock.adjust(regclass, "any", name, numeric, interlock.seconds) IS
'As adjust(regclass, text, name, numeric, interlock.seconds), for a key of another type.';

CREATE FUNCTION interlock.try_adjust(
    rel regclass, key text, column_name name, delta numeric, wait interlock.seconds = '0', OUT outcome text, OUT remaining numeric)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_adjust(
    rel regclass, key "any", column_name name, delta numeric, wait interlock.seconds = '0', OUT outcome text, OUT remaining numeric)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.try_adjust(regclass, text, name, numeric, interlock.seconds) IS
'As adjust, but answers. outcome: adjusted; insufficient, it does not fit whatever becomes of open transactions; pending, it would fit if some of
them end well; not_found.';
COMMENT ON FUNCTION interlock.try_adjust(regclass, "any", name, numeric, interlock.seconds) IS
'As try_adjust(regclass, text, name, numeric, interlock.seconds), for a key of another type.';

CREATE FUNCTION interlock.set_escrow(rel regclass, key text, column_name name, value numeric) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.set_escrow(rel regclass, key "any", column_name name, value numeric) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.set_escrow(regclass, text, name, numeric) IS
'Sets the counter, after all open transactions that adjust it have ended; others wait for this transaction then. As after a
stocktaking. Needs UPDATE of the column. Errors: P0002 no such row, 22023 value outside of the limits, 55000 no escrow counters,
IL004 being edited, 40001 under REPEATABLE READ and above when the counter changed after the snapshot.';
COMMENT ON FUNCTION interlock.set_escrow(regclass, "any", name, numeric) IS
'As set_escrow(regclass, text, name, numeric), for a key of another type.';

CREATE FUNCTION interlock.escrow_value(rel regclass, key text, column_name name) RETURNS numeric
    LANGUAGE c STABLE AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.escrow_value(rel regclass, key "any", column_name name) RETURNS numeric
    LANGUAGE c STABLE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.escrow_value(regclass, text, name) IS
'The value of the counter in the snapshot of the caller: the row and its parts. Null when there is no such row, or the caller may not see it. The column
of the row alone may be behind by what was not folded yet. Needs SELECT on the column and the key. Also on a standby.';
COMMENT ON FUNCTION interlock.escrow_value(regclass, "any", name) IS
'As escrow_value(regclass, text, name), for a key of another type.';

CREATE FUNCTION interlock.fold_escrow(rel regclass, key text = NULL) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.fold_escrow(rel regclass, key "any") RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.fold_escrow(regclass, text) IS
'Adds the committed parts of counters to their rows, as the sweeper does normally within a second, and returns the number of counters. key: of one row
alone. Returns the amounts of expired reservations first. Waits for the locks of the rows, and has them to the end of the transaction. The values stay the same. Runs as the table''s owner, restricted. Needs UPDATE on some
column. Errors: IL004 being edited, 55000 the columns of the counters, or of their key, do not name a row any more, 09000 a trigger suppresses it, 42501 row security hides rows from the caller.';
COMMENT ON FUNCTION interlock.fold_escrow(regclass, "any") IS
'As fold_escrow(regclass, text), for a key of another type.';

CREATE VIEW interlock.escrow WITH (security_barrier) AS
    SELECT c.rel::regclass, CASE WHEN m.reads THEN c.key END AS key, a.attname AS column_name, p.parts,
           CASE WHEN m.reads THEN p.amount END AS amount,
           round(e.inf::numeric / s.step, s.digits) AS remaining,
           round(e.sup::numeric / s.step, s.digits) AS at_most,
           round((e.sup::numeric - e.inf::numeric) / s.step, s.digits)
               - v.reserved AS undecided, CASE WHEN m.reads THEN v.reserved END AS reserved,
           e.folded_at, CASE WHEN p.parts > 0 THEN clock_timestamp() - e.changed_at END AS behind
      FROM interlock_internal.escrow_counter c
      JOIN pg_class t ON t.oid = c.rel::oid
      JOIN pg_attribute a ON a.attrelid = t.oid AND NOT a.attisdropped
                                    AND a.attnum = interlock_internal.counted_column(c.rel::regclass, c.column_name)
     CROSS JOIN LATERAL (
           SELECT count(*) AS parts, COALESCE(sum(j.amount), 0::numeric) AS amount
             FROM interlock_internal.escrow_part j
            WHERE j.counter = c.id) p
     CROSS JOIN LATERAL (
           SELECT COALESCE(sum(r.amount), 0::numeric) AS reserved
             FROM interlock_internal.escrow_reservation r
            WHERE r.counter = c.id) v
     CROSS JOIN LATERAL (
           SELECT d.digits, power(10::numeric, d.digits::numeric) AS step
             FROM (SELECT CASE WHEN a.atttypid = 'numeric'::regtype
                               THEN (a.atttypmod - 4) & 2047 ELSE 0 END AS digits) d) s
     CROSS JOIN LATERAL interlock_internal.escrow_entry(c.id) e
     CROSS JOIN LATERAL (SELECT interlock_internal.may_read_counter(c.rel::regclass, c.column_name) AS reads) m
     WHERE m.reads OR (SELECT pg_has_role('pg_read_all_stats', 'USAGE'));
GRANT SELECT ON interlock.escrow TO PUBLIC;
COMMENT ON VIEW interlock.escrow IS
'Adjusted counters of tables whose column and key the caller may read: the values of the key, the committed parts that are not folded yet and their sum.
remaining: how much is certainly left. at_most: how much is left if all open transactions end in the best way. undecided: what open transactions take and return together. These three are null while the counter is not in shared memory.
reserved: the amount of all reservations. folded_at: when the sweeper last added parts to the row. behind: how long parts have waited for that; null if there are none. Tables whose
rows row security hides from the caller are left out. pg_read_all_stats sees all counters, without the key and the numbers that it may not read.';
