-- What people write instead of the extension, in PL/pgSQL: for one table each, with static statements whose plans are kept.
CREATE SCHEMA own;

-- Versions: a trigger for all writers, and an update on a condition that returns null when it is not met.
CREATE TABLE own.versioned (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO own.versioned SELECT * FROM plain;

CREATE FUNCTION own.move_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    RETURN NEW;
END $$;
CREATE TRIGGER move_version BEFORE UPDATE ON own.versioned FOR EACH ROW EXECUTE FUNCTION own.move_version();

CREATE FUNCTION own.try_versioned_update(key int, expected bigint, new_a int, new_b text, new_c numeric) RETURNS bigint
    LANGUAGE plpgsql AS $$
DECLARE
    moved bigint;
BEGIN
    UPDATE own.versioned SET a = new_a, b = new_b, c = new_c WHERE id = key AND version = expected RETURNING version INTO moved;
    RETURN moved;
END $$;

-- The same for any table and any columns, as the extension's function.
CREATE FUNCTION own.try_versioned_update(rel regclass, key int, expected bigint, changes jsonb) RETURNS bigint
    LANGUAGE plpgsql AS $$
DECLARE
    columns text;
    moved bigint;
BEGIN
    SELECT string_agg(format('%1$I = (jsonb_populate_record(null::%2$s, $1)).%1$I', name, rel), ', ') INTO columns
        FROM jsonb_object_keys(changes) name;
    EXECUTE format('UPDATE %s SET %s WHERE id = $2 AND version = $3 RETURNING version', rel, columns)
        INTO moved USING changes, key, expected;
    RETURN moved;
END $$;

CREATE TABLE own.batch (LIKE hand_batch INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO own.batch SELECT * FROM hand_batch;
CREATE TRIGGER move_version BEFORE UPDATE ON own.batch FOR EACH ROW EXECUTE FUNCTION own.move_version();

CREATE FUNCTION own.versioned_update_many(updates jsonb, OUT key int, OUT outcome text, OUT moved bigint) RETURNS SETOF record
    LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
        WITH wanted AS (SELECT (item->>'key')::int AS id, (item->>'version')::bigint AS expected,
                   changed.a, changed.b, changed.c
                FROM jsonb_array_elements(updates) item, jsonb_to_record(item->'changes') changed(a int, b text, c numeric)),
            done AS (UPDATE own.batch b SET a = w.a, b = w.b, c = w.c FROM wanted w
                WHERE b.id = w.id AND b.version = w.expected RETURNING b.id, b.version)
        SELECT w.id, CASE WHEN d.id IS NULL THEN 'conflict' ELSE 'updated' END, d.version FROM wanted w LEFT JOIN done d USING (id);
END $$;

-- Field ownership: a trigger that lets nobody but the writer change the columns.
CREATE TABLE own.owned (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO own.owned SELECT * FROM plain;

CREATE FUNCTION own.check_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.b, NEW.c, NEW.status) IS DISTINCT FROM (OLD.b, OLD.c, OLD.status)
            AND current_setting('own.writer', true) IS DISTINCT FROM 'editor' THEN
        RAISE EXCEPTION 'only the editor changes these columns';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER check_owner BEFORE UPDATE ON own.owned FOR EACH ROW EXECUTE FUNCTION own.check_owner();

-- History: the row as it becomes, as jsonb.
CREATE TABLE own.recorded (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO own.recorded SELECT * FROM plain;
CREATE TABLE own.history (entry bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id int NOT NULL, changed_at timestamptz NOT NULL,
    writer text, operation text NOT NULL, content jsonb);
CREATE INDEX ON own.history (id, changed_at);

CREATE FUNCTION own.record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO own.history (id, changed_at, writer, operation, content)
        VALUES (NEW.id, clock_timestamp(), current_user, tg_op, to_jsonb(NEW));
    RETURN NULL;
END $$;
CREATE TRIGGER record AFTER UPDATE ON own.recorded FOR EACH ROW EXECUTE FUNCTION own.record();

-- Status transitions: declared in a table, enforced by a trigger, done by a compare-and-set.
CREATE TABLE own.transitions (source text, target text, PRIMARY KEY (source, target));
INSERT INTO own.transitions VALUES ('a', 'a');
CREATE TABLE own.machine (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO own.machine SELECT * FROM plain;

CREATE FUNCTION own.check_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM own.transitions t WHERE t.source = OLD.status AND t.target = NEW.status) THEN
        RAISE EXCEPTION 'cannot go from % to %', OLD.status, NEW.status;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER check_transition BEFORE UPDATE OF status ON own.machine FOR EACH ROW EXECUTE FUNCTION own.check_transition();

CREATE FUNCTION own.try_transition(key int, source text, target text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    UPDATE own.machine SET status = target WHERE id = key AND status = source;
    RETURN CASE WHEN FOUND THEN 'transitioned' ELSE 'state_changed' END;
END $$;

-- Markers: with a deadline, and a trigger that refuses other writers.
CREATE TABLE own.marked (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO own.marked SELECT * FROM plain;

CREATE FUNCTION own.check_marker() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.lock_status = 1 AND OLD.lock_until > clock_timestamp()
            AND OLD.lock_by IS DISTINCT FROM current_setting('own.holder', true) THEN
        RAISE EXCEPTION 'row % is being edited by %', OLD.id, OLD.lock_by;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER check_marker BEFORE UPDATE ON own.marked FOR EACH ROW EXECUTE FUNCTION own.check_marker();

CREATE FUNCTION own.lock_row(key int, who text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE own.marked SET lock_status = 1, lock_by = who, lock_time = clock_timestamp(), lock_until = clock_timestamp() + '5 min'
        WHERE id = key AND (lock_status = 0 OR lock_until <= clock_timestamp());
    RETURN FOUND;
END $$;

CREATE FUNCTION own.save_row(key int, who text, new_b text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('own.holder', who, true);
    UPDATE own.marked SET b = new_b, lock_status = 0, lock_by = NULL, lock_time = NULL, lock_until = NULL
        WHERE id = key AND lock_by = who AND lock_status = 1 AND lock_until > clock_timestamp();
    RETURN FOUND;
END $$;

-- Leases: a row with an expiry and a token that grows.
CREATE SEQUENCE own.tokens;
CREATE TABLE own.leases (key text PRIMARY KEY, token bigint NOT NULL, holder text, expires timestamptz NOT NULL);

CREATE FUNCTION own.acquire_lease(wanted text, ttl interval) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    got bigint;
BEGIN
    INSERT INTO own.leases AS l VALUES (wanted, nextval('own.tokens'), NULL, clock_timestamp() + ttl)
        ON CONFLICT (key) DO UPDATE SET token = excluded.token, holder = excluded.holder, expires = excluded.expires
            WHERE l.expires <= clock_timestamp()
        RETURNING token INTO got;
    RETURN got;
END $$;

CREATE FUNCTION own.release_lease(wanted text, proof bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM own.leases WHERE key = wanted AND token = proof;
    RETURN FOUND;
END $$;

-- Key locks: advisory locks on hashes of names, in order.
CREATE FUNCTION own.lock_key(key text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(key, 0));
END $$;

CREATE FUNCTION own.lock_keys(keys text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    hash bigint;
BEGIN
    FOR hash IN SELECT DISTINCT hashtextextended(key, 0) FROM unnest(keys) key ORDER BY 1 LOOP
        PERFORM pg_advisory_xact_lock(hash);
    END LOOP;
END $$;

CREATE FUNCTION own.select_for_update(keys int[]) RETURNS SETOF int LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT id FROM plain WHERE id = ANY(keys) ORDER BY id FOR UPDATE;
END $$;

-- Idempotency: claims, compares the request, takes over after a minute, and completes under the token.
CREATE FUNCTION own.claim(of_scope text, of_key text, request jsonb, OUT outcome text, OUT proof bigint, OUT answer jsonb)
    LANGUAGE plpgsql AS $$
DECLARE
    hash bytea := sha256(convert_to(request::text, 'UTF8'));
    found_row keys;
BEGIN
    outcome := 'acquired';
    INSERT INTO keys VALUES (of_scope, of_key, 'pending', hash, nextval('own.tokens'), NULL, clock_timestamp())
        ON CONFLICT DO NOTHING RETURNING token INTO proof;
    IF FOUND THEN
        RETURN;
    END IF;
    SELECT * INTO found_row FROM keys WHERE scope = of_scope AND key = of_key FOR UPDATE;
    IF found_row.request_hash <> hash THEN
        outcome := 'mismatch';
    ELSIF found_row.status = 'completed' THEN
        outcome := 'replay';
        answer := found_row.response;
    ELSIF found_row.created < clock_timestamp() - interval '1 min' THEN
        UPDATE keys SET token = nextval('own.tokens'), created = clock_timestamp() WHERE scope = of_scope AND key = of_key
            RETURNING token INTO proof;
    ELSE
        outcome := 'in_progress';
    END IF;
END $$;

CREATE FUNCTION own.complete(of_scope text, of_key text, proof bigint, answer jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE keys SET status = 'completed', response = answer WHERE scope = of_scope AND key = of_key AND token = proof;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the claim of % is lost', of_key;
    END IF;
END $$;
