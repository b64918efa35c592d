-- Claims, which insert and update a row without a statement: each case runs the work on interlock.idempotency, and
-- once more with interlock.direct_execution = off, which makes it run statements; answers, rows, triggers fired, tokens
-- taken, HOT updates and errors must be the same. All of it is rolled back. The context of a row trigger tells how it ran.
\set SHOW_CONTEXT never
\set VERBOSITY terse
SET client_min_messages = warning;
SET datestyle = ISO;
CREATE SEQUENCE how; -- 1 when the last row was written directly, 2 by a statement, 3 not at all; no rollback takes it back
CREATE TABLE fired (id serial, name text, event text, became jsonb);
CREATE FUNCTION log_fired() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE context text;
BEGIN
    GET DIAGNOSTICS context = PG_CONTEXT;
    INSERT INTO public.fired (name, event, became) VALUES (TG_NAME, concat_ws(' ', TG_WHEN, TG_LEVEL, TG_OP), public.timeless(to_jsonb(NEW)));
    PERFORM setval('public.how', CASE WHEN context ~ 'SQL statement "(INSERT INTO|UPDATE) interlock.idempotency' THEN 2 ELSE 1 END) WHERE TG_NAME = 'traced';
    RETURN NEW;
END $$;
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE ROLE insert_role;
CREATE ROLE tenant_role;

-- What is the same in two runs: times only as far as they depend on each other, tokens counted from the first one.
CREATE FUNCTION timeless(stored jsonb) RETURNS jsonb LANGUAGE sql SET search_path = public AS $$
SELECT stored - '{claimed_at,deadline,finished_at,expires_at,token,stamp}'::text[] || jsonb_build_object(
    'minutes', round(extract(epoch FROM (stored->>'deadline')::timestamptz - (stored->>'claimed_at')::timestamptz) / 60),
    'rest', round(extract(epoch FROM (stored->>'expires_at')::timestamptz - (stored->>'deadline')::timestamptz) / 60),
    'finished', (stored->>'finished_at') IS NOT NULL, 'stamped', (stored->>'stamp') IS NOT NULL)
$$;
CREATE FUNCTION masked(message text) RETURNS text LANGUAGE sql AS $$
SELECT regexp_replace(regexp_replace(message, '\d{4}-\d\d-\d\d [^,)"]*', 'a time', 'g'), '((pending|completed|failed), [^,]*, )\d+|("(token|current)": )\d+', '\1\3N', 'g')
$$;
CREATE FUNCTION writes() RETURNS int[] LANGUAGE sql AS $$
SELECT ARRAY[pg_stat_get_xact_tuples_inserted(t), pg_stat_get_xact_tuples_updated(t), pg_stat_get_xact_tuples_hot_updated(t)]::int[] FROM (VALUES ('interlock.idempotency'::regclass)) x(t)
$$;

CREATE FUNCTION effect(setup text, work text, role text, directly boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text; detail text; state text; result text; tokens bigint; before int[];
BEGIN
    PERFORM set_config('interlock.direct_execution', directly::text, true);
    BEGIN
        IF setup !~ 'untraced' THEN CREATE TRIGGER traced BEFORE INSERT OR UPDATE ON interlock.idempotency FOR EACH ROW EXECUTE FUNCTION log_fired(); END IF;
        EXECUTE setup;
        DELETE FROM fired;
        PERFORM setval('how', 3);
        tokens := (SELECT last_value + is_called::int FROM interlock.idempotency_token);
        before := writes();
        SET CONSTRAINTS ALL DEFERRED; -- else as the case before has left them
        BEGIN
            IF role IS NOT NULL THEN EXECUTE format('SET LOCAL ROLE %I', role); END IF;
            EXECUTE work INTO answer;
            SET CONSTRAINTS ALL IMMEDIATE;
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS answer = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, state = RETURNED_SQLSTATE;
        END;
        RESET ROLE;
        result := concat_ws(E'\n', state, masked(answer), masked(detail), (SELECT jsonb_agg(timeless(to_jsonb(i)) || jsonb_build_object('size', pg_column_size(i)) ORDER BY scope, key)
                FROM interlock.idempotency i WHERE scope = 'd'),
            (SELECT jsonb_agg(to_jsonb(f) - 'id' ORDER BY id) FROM fired f),
            (SELECT last_value + is_called::int - tokens FROM interlock.idempotency_token) || ' tokens',
            (SELECT string_agg((now.n - was.n)::text, ' ' ORDER BY i) FROM unnest(writes()) WITH ORDINALITY now(n, i) JOIN unnest(before) WITH ORDINALITY was(n, i) USING (i)) || ' writes');
        RAISE EXCEPTION USING ERRCODE = 'XX999';
    EXCEPTION WHEN SQLSTATE 'XX999' THEN
    END;
    RETURN result;
END $$;

-- One case. The answer is shown in one line.
CREATE FUNCTION try(setup text, work text, role text DEFAULT NULL, OUT how text, OUT same boolean, OUT answer text) LANGUAGE plpgsql AS $$
DECLARE ours text; twin text;
BEGIN
    ours := effect(setup, work, role, true);
    how := (SELECT ('{direct,statement,not seen}'::text[])[last_value] FROM public.how);
    twin := effect(setup, work, role, false);
    same := ours = twin AND (SELECT last_value > 1 FROM public.how); -- which did run a statement
    answer := replace(split_part(ours, E'\n[', 1), E'\n', ' ');
    IF NOT same THEN answer := ours || E'\n<>\n' || twin; END IF;
END $$;

-- The work: claims and what comes after them, as the caller who has the key sees them.
CREATE FUNCTION claim(key text, request jsonb DEFAULT NULL) RETURNS text LANGUAGE sql SET search_path = interlock AS $$
SELECT concat_ws(' ', outcome, token IS NOT NULL, attempt, checkpoint, state, length(response::text), result_id) FROM interlock.idempotency_claim('d', key, request)
$$;
CREATE FUNCTION complete(key text, response jsonb DEFAULT '{"a": 1}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE claim record;
BEGIN
    claim := interlock.idempotency_claim('d', key, '{"n": 1}');
    PERFORM interlock.idempotency_complete('d', key, claim.token, response, 'id');
    RETURN claim.outcome;
END $$;
CREATE FUNCTION echo(request jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT request';
CREATE FUNCTION token(k text) RETURNS bigint LANGUAGE sql AS $$SELECT token FROM interlock.idempotency WHERE scope = 'd' AND key = k$$;
CREATE FUNCTION try_claim(setup text, role text DEFAULT NULL, OUT how text, OUT same boolean, OUT answer text) LANGUAGE sql AS $$
SELECT * FROM try(setup, 'SELECT claim(''k'', ''{"n": 1}'')', role)
$$;
SELECT interlock.grant_idempotency_scope('d', 'insert_role');

-- Plain claims
SELECT * FROM try_claim('');
SELECT * FROM try_claim('-- untraced');
SELECT * FROM try_claim('', 'insert_role');
SELECT * FROM try('', $$SELECT claim('k')$$);
SELECT * FROM try('-- untraced', $$SELECT complete('k')$$);
SELECT * FROM try('', $$SELECT complete('k')$$);
SELECT * FROM try('', $$SELECT claim('k') || claim('k') || claim('l')$$);
SELECT * FROM try('', $$SELECT complete('k') || claim('k', '{"n": 1}') || claim('k', '{"n": 2}')$$);
SELECT * FROM try('', $$SELECT interlock.run_once('d', 'k', 'echo(jsonb)', '{"a": 1}')$$);
SELECT * FROM try('', $$SELECT complete('k', (SELECT jsonb_agg(md5(g::text)) FROM generate_series(1, 1000) g)) || claim('k')$$);
SELECT * FROM try('ALTER TABLE interlock.idempotency ALTER response SET STORAGE EXTERNAL', $$SELECT complete('k', to_jsonb(repeat('x', 9000))) || claim('k')$$);
SELECT * FROM try($$SELECT interlock.define_idempotency_scope('d', max_response_bytes => 10)$$, $$SELECT complete('k', to_jsonb(repeat('x', 9000))) || claim('k')$$);
-- The other ends, and claims of what is there
SELECT * FROM try($$SELECT claim('k')$$, $$SELECT interlock.idempotency_fail('d', 'k', token('k'), '{"e": 1}')$$);
SELECT * FROM try($$SELECT claim('k')$$, $$SELECT interlock.idempotency_fail('d', 'k', token('k'), '{"e": 1}', false)$$);
SELECT * FROM try($$SELECT claim('k')$$, $$SELECT interlock.idempotency_extend('d', 'k', token('k')) > now()$$);
SELECT * FROM try($$SELECT claim('k')$$, $$SELECT interlock.idempotency_assert('d', 'k', token('k'))$$);
SELECT * FROM try($$SELECT claim('k')$$, $$SELECT interlock.idempotency_checkpoint('d', 'k', token('k'), 'half')$$);
SELECT * FROM try($$SELECT interlock.define_idempotency_scope('d', 'job', stale_after => '1 hour'); SELECT claim('k')$$, $$SELECT interlock.idempotency_checkpoint('d', 'k', token('k'), 'half', '[2]')$$);
SELECT * FROM try($$SELECT complete('k')$$, $$SELECT interlock.idempotency_complete('d', 'k', token('k'), '{"a": 1}', 'id')$$);
SELECT * FROM try($$SELECT claim('k')$$, $$SELECT interlock.idempotency_complete('d', 'k', token('k') + 1)$$);
SELECT * FROM try('', $$SELECT interlock.idempotency_complete('d', 'k', 1)$$);
-- IDM-3, IDM-5, IDM-6: bodies, times and states of a claim; what is given back and forgotten
SELECT * FROM try($$SELECT claim('k')$$, $$SELECT interlock.idempotency_complete('d', 'k', token('k'), '1', body => '\x0001')$$);
SELECT * FROM try($$SELECT claim('k')$$, $$SELECT interlock.idempotency_complete('d', 'k', token('k'), '1', body => convert_to(repeat('x', 70000), 'UTF8'))$$);
SELECT * FROM try('', $$SELECT outcome || state FROM interlock.idempotency_claim('d', 'k', ttl => '1 min', stale_after => '1 h', state => '[1]')$$);
SELECT * FROM try($$SELECT interlock.idempotency_claim('d', 'k', ttl => '1 min', stale_after => '1 h')$$, $$SELECT interlock.idempotency_extend('d', 'k', token('k')) > now() + interval '50 min'$$);
SELECT * FROM try($$SELECT interlock.idempotency_claim('d', 'k', ttl => '1 min', stale_after => '1 h')$$, $$SELECT interlock.idempotency_complete('d', 'k', token('k'), body => '')$$);
SELECT * FROM try($$SELECT interlock.idempotency_claim('d', 'k', ttl => '1 min', state => '[1]'); UPDATE interlock.idempotency SET deadline = now() WHERE scope = 'd'$$,
    $$SELECT outcome || attempt || state FROM interlock.idempotency_claim('d', 'k', stale_after => '1 h', state => '[2]')$$);
SELECT * FROM try($$SELECT claim('k')$$, $$SELECT interlock.idempotency_release('d', 'k', token('k'))$$);
SELECT * FROM try($$SELECT claim('k'); UPDATE interlock.idempotency SET attempt = 3 WHERE scope = 'd'$$, $$SELECT interlock.idempotency_release('d', 'k', token('k'))$$);
SELECT * FROM try($$SELECT complete('k')$$, $$SELECT interlock.idempotency_forget('d', 'k', 'r')$$);
SELECT * FROM try($$SELECT complete('k')$$, $$SELECT status || attempt || response || result_id FROM interlock.idempotency_lookup('d', 'k')$$);
SELECT * FROM try('CREATE TRIGGER nothing BEFORE UPDATE ON interlock.idempotency FOR EACH ROW EXECUTE FUNCTION nothing(); SELECT claim(''k'')', $$SELECT interlock.idempotency_release('d', 'k', token('k'))$$);
SELECT * FROM try('SELECT claim(''k''); ALTER TABLE interlock.idempotency DROP COLUMN body', $$SELECT interlock.idempotency_complete('d', 'k', token('k'), '1')$$);
SELECT * FROM try('ALTER TABLE interlock.idempotency DROP COLUMN body', $$SELECT outcome FROM interlock.idempotency_claim('d', 'k', ttl => '1 min')$$);
SELECT * FROM try('ALTER TABLE interlock.idempotency ALTER body TYPE text USING encode(body, ''hex''); SELECT claim(''k'')', $$SELECT interlock.idempotency_complete('d', 'k', token('k'), '1', body => '\x00')$$);
SELECT * FROM try($$SELECT claim('k'); UPDATE interlock.idempotency SET expires_at = now() + interval '1 min' WHERE scope = 'd'$$, $$SELECT interlock.idempotency_complete('d', 'k', token('k'))$$);
SELECT * FROM try($$SELECT complete('k'); UPDATE interlock.idempotency SET expires_at = now() WHERE scope = 'd'$$, $$SELECT claim('k')$$);
SELECT * FROM try($$SELECT complete('k'); UPDATE interlock.idempotency SET expires_at = now() WHERE scope = 'd'$$, $$SELECT claim('k', '{"n": 7}')$$);
SELECT * FROM try($$SELECT claim('k', '{"n": 1}'); SELECT interlock.idempotency_fail('d', 'k', token('k'), '{"e": 1}')$$, $$SELECT claim('k')$$);
SELECT * FROM try($$SELECT claim('k'); SELECT interlock.idempotency_fail('d', 'k', token('k'), '{"e": 1}')$$, $$SELECT claim('k', '{"n": 1}')$$);
SELECT * FROM try($$SELECT interlock.define_idempotency_scope('d', 'job'); SELECT claim('k'); SELECT interlock.idempotency_checkpoint('d', 'k', token('k'), 'half', '[2]'); UPDATE interlock.idempotency SET deadline = now() WHERE scope = 'd'$$,
    $$SELECT claim('k')$$);
SELECT * FROM try($$SELECT interlock.define_idempotency_scope('d', 'api', ttl => '1 month 2 days 3 hours', stale_after => '1 hour', replay_failures => true); SELECT claim('k'); SELECT interlock.idempotency_fail('d', 'k', token('k'), '{"e": 1}')$$,
    $$SELECT claim('k') || claim('l')$$);

-- Defaults of columns that a claim does not name, and columns that the server makes
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ADD a int DEFAULT 5, ADD b text DEFAULT ''x'' || ''y'', ADD c text, ADD d text DEFAULT upper(''z''), ADD e numeric(5, 2) DEFAULT 1.005; ALTER TABLE interlock.idempotency DROP COLUMN c');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ADD stamp timestamptz DEFAULT clock_timestamp(), ADD "user" text DEFAULT current_user');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ADD stamp timestamptz DEFAULT clock_timestamp()');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ADD stamp timestamptz DEFAULT clock_timestamp() + interval ''1 day''');
SELECT * FROM try_claim('CREATE FUNCTION five() RETURNS int LANGUAGE sql IMMUTABLE AS ''SELECT 5''; ALTER TABLE interlock.idempotency ADD a int DEFAULT five()');
SELECT * FROM try_claim('CREATE FUNCTION five() RETURNS int LANGUAGE plpgsql AS ''BEGIN RETURN 5; END''; ALTER TABLE interlock.idempotency ADD a int DEFAULT five()');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ALTER attempt DROP DEFAULT');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ALTER attempt SET DEFAULT 1 / (length(current_user) - length(current_user))');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ALTER token SET DEFAULT 77');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ADD n int GENERATED BY DEFAULT AS IDENTITY, ADD m bigint GENERATED ALWAYS AS IDENTITY (START 40), ADD o smallint GENERATED ALWAYS AS IDENTITY (START 7)');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ADD n smallint GENERATED ALWAYS AS IDENTITY (START 7)', 'insert_role');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ALTER token DROP DEFAULT; ALTER TABLE interlock.idempotency ALTER token ADD GENERATED BY DEFAULT AS IDENTITY');
SELECT * FROM try('SELECT claim(''k''); UPDATE interlock.idempotency SET deadline = now() WHERE scope = ''d''; ALTER TABLE interlock.idempotency ALTER token DROP DEFAULT; ALTER TABLE interlock.idempotency ALTER token ADD GENERATED ALWAYS AS IDENTITY', $$SELECT claim('k')$$);
SELECT * FROM try('SELECT claim(''k''); UPDATE interlock.idempotency SET deadline = now() WHERE scope = ''d''; ALTER TABLE interlock.idempotency ALTER attempt DROP DEFAULT; ALTER TABLE interlock.idempotency ALTER attempt ADD GENERATED ALWAYS AS IDENTITY', $$SELECT claim('k')$$);
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ALTER status DROP NOT NULL');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ADD twice int GENERATED ALWAYS AS (attempt * 2) STORED');
SELECT * FROM try_claim('CREATE DOMAIN small AS int DEFAULT 3 CHECK (VALUE < 5); ALTER TABLE interlock.idempotency ADD a small');
SELECT * FROM try_claim('CREATE DOMAIN small AS int DEFAULT 3; ALTER TABLE interlock.idempotency ADD a small; ALTER DOMAIN small SET DEFAULT 4');
SELECT * FROM try_claim('CREATE DOMAIN there AS int CHECK (VALUE IS NOT NULL); ALTER TABLE interlock.idempotency ADD a there DEFAULT 1; ALTER TABLE interlock.idempotency ALTER a DROP DEFAULT');
SELECT * FROM try_claim('CREATE DOMAIN short AS text CHECK (length(VALUE) < 1); ALTER TABLE interlock.idempotency ALTER key TYPE short');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ALTER result_id TYPE varchar(2), ALTER scope TYPE varchar(9)');
SELECT * FROM try('ALTER TABLE interlock.idempotency ALTER result_id TYPE varchar(1)', $$SELECT complete('k')$$);
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ALTER claimed_at TYPE timestamptz(0)');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ALTER key TYPE text COLLATE "POSIX"');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency DROP COLUMN state; ALTER TABLE interlock.idempotency ADD state jsonb');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency DROP COLUMN response; ALTER TABLE interlock.idempotency ADD response jsonb');
-- Errors
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ADD CHECK (attempt > 1)');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ADD CHECK (attempt > 1)', 'insert_role');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ALTER result_id SET NOT NULL');
SELECT * FROM try('ALTER TABLE interlock.idempotency ADD CHECK (status <> ''completed'')', $$SELECT complete('k')$$);
SELECT * FROM try('SELECT claim(''other'')', $$SELECT claim('k')$$);
SELECT * FROM try('CREATE UNIQUE INDEX ON interlock.idempotency (scope, attempt); SELECT claim(''other'')', $$SELECT claim('k')$$);
SELECT * FROM try('CREATE UNIQUE INDEX ON interlock.idempotency (scope, key) WHERE attempt > 0', $$SELECT claim('k')$$);
SELECT * FROM try('CREATE UNIQUE INDEX ON interlock.idempotency (key, scope)', $$SELECT claim('k')$$);
SELECT * FROM try('ALTER TABLE interlock.idempotency ADD UNIQUE (key, scope) DEFERRABLE', $$SELECT claim('k')$$);
SELECT * FROM try('ALTER TABLE interlock.idempotency ADD EXCLUDE USING btree (scope WITH =, attempt WITH =); SELECT claim(''other'')', $$SELECT claim('k')$$);
SELECT * FROM try('ALTER TABLE interlock.idempotency ADD EXCLUDE USING btree (scope WITH =, attempt WITH =) DEFERRABLE INITIALLY DEFERRED; SELECT claim(''other'')', $$SELECT claim('k')$$);
SELECT * FROM try_claim('CREATE INDEX ON interlock.idempotency ((attempt + 1)) WHERE checkpoint IS NULL; CREATE INDEX ON interlock.idempotency USING brin (deadline)');
SELECT * FROM try_claim('CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (5); ALTER TABLE interlock.idempotency ADD parent int DEFAULT 5 REFERENCES parent');
SELECT * FROM try_claim('CREATE TABLE parent (id int PRIMARY KEY); ALTER TABLE interlock.idempotency ADD parent int DEFAULT 5 REFERENCES parent');
SELECT * FROM try_claim('CREATE TABLE parent (id int PRIMARY KEY); ALTER TABLE interlock.idempotency ADD parent int DEFAULT 5 REFERENCES parent DEFERRABLE INITIALLY DEFERRED');
SELECT * FROM try('CREATE TABLE child (s text, k text, FOREIGN KEY (s, k) REFERENCES interlock.idempotency)', $$SELECT complete('k')$$);
-- Triggers
SELECT * FROM try_claim('CREATE TRIGGER late AFTER INSERT ON interlock.idempotency FOR EACH ROW WHEN (NEW.attempt = 1) EXECUTE FUNCTION log_fired(); CREATE TRIGGER never AFTER INSERT ON interlock.idempotency FOR EACH ROW WHEN (NEW.attempt = 2) EXECUTE FUNCTION log_fired()');
SELECT * FROM try('CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE ON interlock.idempotency DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_fired()', $$SELECT complete('k')$$);
SELECT * FROM try_claim('CREATE TRIGGER suppress BEFORE INSERT ON interlock.idempotency FOR EACH ROW EXECUTE FUNCTION nothing()');
SELECT * FROM try_claim('CREATE FUNCTION third() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN NEW.attempt := 3; NEW.token := 5; RETURN NEW; END''; CREATE TRIGGER "A" BEFORE INSERT ON interlock.idempotency FOR EACH ROW EXECUTE FUNCTION third()');
SELECT * FROM try_claim('CREATE FUNCTION taken() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN IF pg_trigger_depth() = 1 THEN INSERT INTO interlock.idempotency SELECT NEW.*; END IF; RETURN NEW; END''; CREATE TRIGGER taken BEFORE INSERT ON interlock.idempotency FOR EACH ROW EXECUTE FUNCTION taken()');
SELECT * FROM try('CREATE FUNCTION moved() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN NEW.key := ''''other''''; RETURN NEW; END''; SELECT claim(''other''); CREATE TRIGGER moved BEFORE INSERT ON interlock.idempotency FOR EACH ROW EXECUTE FUNCTION moved()',
    $$SELECT claim('k')$$);
SELECT * FROM try_claim('CREATE TRIGGER once BEFORE INSERT ON interlock.idempotency FOR EACH STATEMENT EXECUTE FUNCTION log_fired()');
SELECT * FROM try_claim('CREATE TRIGGER once AFTER INSERT ON interlock.idempotency FOR EACH STATEMENT EXECUTE FUNCTION nothing()');
SELECT * FROM try_claim('CREATE TRIGGER once AFTER INSERT ON interlock.idempotency REFERENCING NEW TABLE AS new FOR EACH STATEMENT EXECUTE FUNCTION nothing()');
SELECT * FROM try_claim('CREATE TRIGGER never BEFORE INSERT ON interlock.idempotency FOR EACH ROW EXECUTE FUNCTION nothing(); ALTER TABLE interlock.idempotency DISABLE TRIGGER never');
-- Who may, and what is not plain
SELECT * FROM try_claim('-- untraced', 'insert_role');
SELECT * FROM try('-- untraced', $$SELECT complete('k')$$, 'insert_role');
SELECT * FROM try('', $$SELECT complete('k')$$, 'insert_role');
SELECT * FROM try_claim('SELECT interlock.revoke_idempotency_scope(''d'', ''insert_role'')', 'insert_role');
SELECT * FROM try('-- untraced', $$SELECT interlock.run_once('d', 'k', 'echo(jsonb)', '{"a": 1}')$$, 'insert_role');
SELECT * FROM try_claim('REVOKE ALL ON interlock.idempotency, interlock.idempotency_scope, interlock.idempotency_grant FROM PUBLIC', 'insert_role');
SELECT * FROM try_claim('REVOKE EXECUTE ON FUNCTION nextval(regclass) FROM PUBLIC', 'insert_role');
SELECT * FROM try('SELECT claim(''k''); UPDATE interlock.idempotency SET deadline = now() WHERE scope = ''d''', $$SELECT claim('k')$$, 'insert_role');
-- the owner's rights are all there are
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency OWNER TO tenant_role; GRANT USAGE ON SEQUENCE interlock.idempotency_token TO tenant_role', 'insert_role');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency OWNER TO tenant_role', 'insert_role');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency OWNER TO tenant_role; GRANT USAGE ON SEQUENCE interlock.idempotency_token TO tenant_role; REVOKE INSERT ON interlock.idempotency FROM tenant_role', 'insert_role');
SELECT * FROM try_claim('-- untraced
    ALTER TABLE interlock.idempotency OWNER TO tenant_role; REVOKE EXECUTE ON FUNCTION nextval(regclass) FROM PUBLIC', 'insert_role');
-- SEC-10: no code of another role with them
SELECT * FROM try_claim('CREATE FUNCTION theirs() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN NEW; END''; ALTER FUNCTION theirs() OWNER TO tenant_role; CREATE TRIGGER theirs BEFORE INSERT ON interlock.idempotency FOR EACH ROW EXECUTE FUNCTION theirs()', 'insert_role');
SELECT * FROM try_claim('CREATE FUNCTION theirs() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN NEW; END''; ALTER FUNCTION theirs() OWNER TO tenant_role; CREATE TRIGGER theirs AFTER UPDATE ON interlock.idempotency FOR EACH ROW EXECUTE FUNCTION theirs()');
-- nor do policies count
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ENABLE ROW LEVEL SECURITY', 'insert_role');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON interlock.idempotency USING (key <> ''k'')', 'insert_role');
SELECT * FROM try('-- untraced
    ALTER TABLE interlock.idempotency ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY, OWNER TO tenant_role; GRANT USAGE ON SEQUENCE interlock.idempotency_token TO tenant_role; CREATE POLICY p ON interlock.idempotency USING (key <> ''k'')', $$SELECT complete('k')$$, 'insert_role');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency ENABLE ROW LEVEL SECURITY');
SELECT * FROM try_claim('CREATE RULE r AS ON INSERT TO interlock.idempotency DO ALSO INSERT INTO fired VALUES (DEFAULT, ''rule'')');
SELECT * FROM try('SELECT claim(''k''); CREATE RULE r AS ON DELETE TO interlock.idempotency DO INSTEAD NOTHING', $$SELECT interlock.idempotency_complete('d', 'k', token('k'))$$);
SELECT * FROM try_claim('CREATE TABLE heir () INHERITS (interlock.idempotency)');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency DROP CONSTRAINT idempotency_pkey; ALTER TABLE interlock.idempotency ADD PRIMARY KEY (key, scope)');
SELECT * FROM try_claim('ALTER TABLE interlock.idempotency DROP CONSTRAINT idempotency_pkey');
-- Transactions that are not read committed, or may not write
CREATE TRIGGER traced BEFORE INSERT OR UPDATE ON interlock.idempotency FOR EACH ROW EXECUTE FUNCTION log_fired();
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT claim('k'), (SELECT last_value FROM how) AS how;
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT claim('k'), (SELECT last_value FROM how) AS how;
ROLLBACK;
BEGIN READ ONLY;
SELECT claim('k');
ROLLBACK;
-- columns that change between two claims
SELECT claim('as made'), (SELECT last_value FROM how) AS how;
ALTER TABLE interlock.idempotency ALTER result_id TYPE varchar;
SELECT claim('another type'), (SELECT last_value FROM how) AS how;
ALTER TABLE interlock.idempotency ALTER result_id TYPE text;
SELECT claim('as made again'), (SELECT last_value FROM how) AS how;
DROP TRIGGER traced ON interlock.idempotency;
-- a default that changes is that of the next claim
SELECT claim('first');
ALTER TABLE interlock.idempotency ALTER attempt SET DEFAULT 9;
SELECT claim('second');
ALTER TABLE interlock.idempotency ALTER attempt SET DEFAULT 1;
SELECT claim('third');
-- so is a check, and what it calls
CREATE FUNCTION fits(attempt int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT attempt < 5';
ALTER TABLE interlock.idempotency ADD CONSTRAINT fits CHECK (fits(attempt)) NOT VALID;
SELECT claim('fourth');
CREATE OR REPLACE FUNCTION fits(attempt int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT attempt > 5';
SELECT claim('fifth');
ALTER TABLE interlock.idempotency DROP CONSTRAINT fits, ADD CONSTRAINT other CHECK (length(key) > 5) NOT VALID;
SELECT claim('sixth');
SELECT claim('seventh');
ALTER TABLE interlock.idempotency DROP CONSTRAINT other;
DROP FUNCTION fits;

DELETE FROM interlock.idempotency WHERE scope = 'd';
DELETE FROM interlock.idempotency_grant;
DROP FUNCTION try_claim, try, effect, claim, complete, echo, token, writes, masked, log_fired, timeless, nothing;
DROP TABLE fired;
DROP SEQUENCE how;
DROP ROLE insert_role, tenant_role;
