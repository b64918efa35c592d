-- What each shard has. Run it in the shard's database, as its owner and as a superuser:
--
--   psql -v ON_ERROR_STOP=1 -d shard -f shard.sql

CREATE EXTENSION pg_interlock;

CREATE TABLE invoice (tenant text, id int, amount numeric NOT NULL, paid boolean NOT NULL DEFAULT false, PRIMARY KEY (tenant, id));
CREATE TABLE payment (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), tenant text NOT NULL, amount numeric NOT NULL);
SELECT interlock.enable_versioning('invoice');
SELECT interlock.define_idempotency_scope('charge');

-- Which of the 256 slots a path belongs to: its first level decides. The router and the clients compute the same.
CREATE FUNCTION slot_of(path text) RETURNS int IMMUTABLE LANGUAGE sql
    AS $$ SELECT get_byte(sha256(convert_to(split_part(path, '/', 1), 'UTF8')), 0) $$;

-- The slots of this shard. Open: everything is served. Draining: no new lease is granted. Closed: nothing is served.
CREATE TABLE slot (slot int PRIMARY KEY CHECK (slot BETWEEN 0 AND 255), state text NOT NULL CHECK (state IN ('open', 'draining', 'closed')));

-- Waits for the transactions that have entered the slot.
CREATE FUNCTION set_slot(slot int, state text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM interlock.lock_key('slot/' || set_slot.slot);
    INSERT INTO slot VALUES (set_slot.slot, set_slot.state) ON CONFLICT ON CONSTRAINT slot_pkey DO UPDATE SET state = excluded.state;
END $$;

-- Every transaction on a tenant calls it: the slot stays as it is until the transaction ends. It raises SH001 if the slot is not
-- served here. Under READ COMMITTED the query sees the change for which the lock has waited.
CREATE FUNCTION enter(path text, new_lease boolean DEFAULT false) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    found_state text;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'enter() needs READ COMMITTED' USING ERRCODE = 'invalid_transaction_state';
    END IF;
    PERFORM interlock.lock_key('slot/' || slot_of(path), 'shared');
    SELECT state INTO found_state FROM slot WHERE slot = slot_of(path);
    IF found_state = 'open' OR found_state = 'draining' AND NOT new_lease THEN
        RETURN;
    END IF;
    RAISE EXCEPTION 'slot % is % on this shard', slot_of(path), coalesce(found_state, 'not')
        USING ERRCODE = 'SH001', HINT = 'Read the map of the slots again, and repeat the call after a moment.';
END $$;

-- What the router calls. Each call is a transaction of its own.

CREATE FUNCTION lease(path text, ttl interval, who text, OUT outcome text, OUT token bigint, OUT holder text) LANGUAGE sql AS $$
    SELECT enter(path, new_lease => true);
    SELECT l.outcome, l.token, l.holder FROM interlock.acquire_lease(path, ttl, holder => who) l;
$$;

CREATE FUNCTION renew(path text, token bigint) RETURNS timestamptz LANGUAGE sql AS $$
    SELECT enter(path);
    SELECT interlock.renew_lease(path, token);
$$;

CREATE FUNCTION release(path text, token bigint) RETURNS boolean LANGUAGE sql AS $$
    SELECT enter(path);
    SELECT interlock.release_lease(path, token);
$$;

CREATE FUNCTION add_invoice(tenant text, id int, amount numeric) RETURNS bigint LANGUAGE sql AS $$
    SELECT enter(tenant);
    INSERT INTO invoice VALUES (tenant, id, amount) RETURNING version;
$$;

-- The assertion and the write that it protects, in one function.
CREATE FUNCTION pay_invoice(tenant text, id int, version bigint, token bigint) RETURNS bigint LANGUAGE sql AS $$
    SELECT enter(tenant);
    SELECT interlock.assert_lease(tenant || '/billing', token);
    SELECT interlock.versioned_update('invoice', jsonb_build_object('tenant', tenant, 'id', id)::text, version, '{"paid": true}');
$$;

CREATE FUNCTION charge_now(request jsonb) RETURNS jsonb LANGUAGE sql AS $$
    INSERT INTO payment (tenant, amount) VALUES (request->>'tenant', (request->>'amount')::numeric) RETURNING jsonb_build_object('payment', id);
$$;

-- The claim, the effect and the answer, in one function. The key begins with the tenant, so that it has the tenant's slot.
CREATE FUNCTION charge(tenant text, request_key text, amount numeric, OUT outcome text, OUT response jsonb) LANGUAGE sql AS $$
    SELECT enter(tenant);
    SELECT r.outcome, r.response
      FROM interlock.run_once('charge', tenant || '/' || request_key, 'charge_now', jsonb_build_object('tenant', tenant, 'amount', amount)) r;
$$;

-- A report that the router calls on every shard.
CREATE FUNCTION unpaid(OUT tenant text, OUT id int, OUT amount numeric) RETURNS SETOF record LANGUAGE sql AS $$
    SELECT i.tenant, i.id, i.amount FROM invoice i JOIN slot s ON s.slot = slot_of(i.tenant) WHERE NOT i.paid AND s.state <> 'closed';
$$;
