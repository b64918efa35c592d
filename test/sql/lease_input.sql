-- Bad and odd input of leases: every error has its SQLSTATE and says what is wrong, and leaves nothing behind.
\pset null '(null)'
CREATE SCHEMA lease_input;
SET search_path = lease_input;
SET application_name = 'the application';
CREATE FUNCTION release_all() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FILTER (WHERE interlock.release_lease(key, token)) FROM interlock.leases';

-- What a call answers, with a hint if it raises; every lease that it got is given back.
CREATE FUNCTION try(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
    advice text;
BEGIN
    EXECUTE 'SELECT x::text FROM interlock.' || call || ' x' INTO answer;
    PERFORM release_all();
    RETURN regexp_replace(answer, '^\((acquired|held),.*', '\1');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS advice = PG_EXCEPTION_HINT;
    RETURN format('%s %s', SQLSTATE, SQLERRM) || coalesce(' (' || nullif(advice, '') || ')', '');
END $$;
CREATE FUNCTION try_all(calls text[]) RETURNS TABLE (call text, answer text) LANGUAGE sql AS
    'SELECT regexp_replace(c, ''(.{90}).*'', ''\1 ...''), regexp_replace(try(c), ''(.)\1{60,}'', ''\1..\1'', ''g'') FROM unnest(calls) WITH ORDINALITY u(c, n) ORDER BY n';
\x on

-- keys
SELECT * FROM try_all(ARRAY['acquire_lease(NULL)', 'acquire_permit(NULL, 1)', 'renew_lease(NULL, 1)', 'release_lease(NULL, 1)', 'assert_lease(NULL, 1)', 'break_lease(NULL, ''r'')',
    'acquire_lease('''')', 'acquire_permit('''', 1)', 'renew_lease('''', 1)', 'release_lease('''', 1)', 'assert_lease('''', 1)', 'break_lease('''', ''r'')']);
SELECT * FROM try_all(ARRAY['acquire_lease(repeat(''x'', 1024))', 'acquire_lease(repeat(''x'', 1025))', 'acquire_lease(repeat(''é'', 512))', 'acquire_lease(repeat(''é'', 512) || ''x'')',
    'acquire_lease(repeat(''x'', 1000000))', 'acquire_lease(repeat(''x'', 512) || ''/'' || repeat(''y'', 511))', 'release_lease(repeat(''x'', 1025), 1)']);
SELECT * FROM try_all(ARRAY['acquire_lease(repeat(''l/'', 63) || ''l'')', 'acquire_lease(repeat(''l/'', 64) || ''l'')', 'acquire_lease(repeat(''l/'', 511) || ''l'')',
    'acquire_leases(ARRAY[''a'', repeat(''l/'', 64) || ''l''])']);
SELECT * FROM try_all(ARRAY['acquire_lease(''/'')', 'acquire_lease(''//'')', 'acquire_lease(''/a'')', 'acquire_lease(''a/'')', 'acquire_lease(''a//b'')', 'acquire_lease(''a/b//'')',
    'acquire_permit(''a/'', 1)', 'renew_lease(''/a'', 1)', 'release_lease(''a//b'', 1)', 'assert_lease(''a/'', 1)', 'break_lease(''/'', ''r'')', 'acquire_leases(''{a,b/}'')']);

-- whatever has no slash is one level, and no two texts are one key
\x off
CREATE TABLE odd (n serial, key text);
INSERT INTO odd (key) VALUES (' '), ('a'), ('A'), (' a'), ('a '), ('it''s'), ('"quoted"'), ('back\slash'), ('per%cent %s %n'), ('{"a": 1}'), (E'new\nline'), (E'tab\t'), ('.'), ('..'), ('b/.'),
    ('c/..'), ('*'), ('ü'), (U&'u\0308'), ('日本語/鍵'), ('😀'), (E'\u200b'), ('null'), (E'\x01');
SELECT n, outcome, token IS NOT NULL AS has_token FROM odd, LATERAL interlock.acquire_lease(key, '1 min') ORDER BY n;
SELECT count(*), count(*) FILTER (WHERE o.key = l.key) AS as_given FROM odd o FULL JOIN interlock.leases l ON o.key = l.key COLLATE "C";
SELECT release_all();
\x on

-- ttl
SELECT * FROM try_all(ARRAY['acquire_lease(''k'', NULL)', 'acquire_lease(''k'', ''0'')', 'acquire_lease(''k'', ''-1 s'')', 'acquire_lease(''k'', ''1 day -25 hours'')', 'acquire_lease(''k'', ''1 us'')', 'acquire_lease(''k'', ''1 day'')',
    'acquire_lease(''k'', ''24:00:00.000001'')', 'acquire_lease(''k'', ''1 day 1 us'')', 'acquire_lease(''k'', ''2 days -24 hours'')', 'acquire_lease(''k'', ''1 month -29 days'')', 'acquire_lease(''k'', ''100 years'')', 'acquire_lease(''k'', ''-100 years'')',
    'acquire_lease(''k'', ''178000000 years'')', 'acquire_lease(''k'', ''soon'')', 'acquire_permit(''k'', 1, NULL)', 'acquire_permit(''k'', 1, ''0'')', 'acquire_permit(''k'', 1, ''100 years'')',
    'acquire_leases(''{k}'', NULL)', 'acquire_leases(''{k}'', ''0'')', 'acquire_leases(''{k}'', ''100 years'')', 'renew_lease(''k'', 1, ''0'')', 'renew_lease(''k'', 1, ''-1 s'')', 'renew_lease(''k'', 1, ''2 days'')',
    'acquire_lease(''k'', ''0'', bind => ''session'')']);
-- a text that is infinite, on servers without infinite intervals, too
SELECT * FROM try_all(ARRAY['acquire_lease(''k'', ''infinity'')', 'acquire_lease(''k'', ''-infinity'')', 'acquire_lease(''k'', wait => ''infinity'')', 'acquire_lease(''k'', wait => ''-infinity'')',
    'renew_lease(''k'', 1, ''infinity'')', 'renew_lease(''k'', 1, ''-infinity'')']);
-- an error of the type seconds can be asked for since PostgreSQL 16
DO $$ DECLARE valid bool = false; BEGIN
    IF current_setting('server_version_num')::int >= 160000 THEN EXECUTE $q$SELECT pg_input_is_valid('soon', 'interlock.seconds')$q$ INTO valid; END IF;
    RAISE NOTICE '%', valid;
END $$;
SET interlock.max_lease_ttl = '10 s';
SELECT * FROM try_all(ARRAY['acquire_lease(''k'')', 'acquire_lease(''k'', ''10 s'')', 'acquire_lease(''k'', ''10.000001 s'')', 'acquire_permit(''k'', 1)', 'acquire_leases(''{k}'')', 'renew_lease(''k'', 1, ''11 s'')']);
RESET interlock.max_lease_ttl;
CREATE ROLE regress_lease_input;
SET ROLE regress_lease_input;
SET interlock.max_lease_ttl = '1 year';
RESET ROLE;
DROP ROLE regress_lease_input;

-- wait
SELECT * FROM try_all(ARRAY['acquire_lease(''k'', wait => NULL)', 'acquire_lease(''k'', wait => ''-1 us'')', 'acquire_lease(''k'', wait => ''100 years'')', 'acquire_lease(''k'', wait => ''-100 years'')', 'acquire_permit(''k'', 1, wait => NULL)',
    'acquire_permit(''k'', 1, wait => ''-1 s'')', 'acquire_leases(''{k}'', wait => NULL)', 'acquire_leases(''{k}'', wait => ''-1 s'')', 'acquire_lease(''k'', wait => ''9 years'')', 'acquire_leases(''{k}'', wait => ''100 years'')', 'acquire_leases(''{k}'', wait => ''9 years'')']);

-- tokens
SELECT token AS t FROM interlock.acquire_lease('mine', '1 min') \gset
SELECT token AS other FROM interlock.acquire_lease('other', '1 min') \gset
SELECT token, interlock.renew_lease('mine', token), interlock.release_lease('mine', token) FROM unnest(ARRAY[0, -1, 1, -9223372036854775808, 9223372036854775807]) token;
SELECT interlock.renew_lease('mine', t), interlock.release_lease('mine', t) FROM unnest(ARRAY[:other, :t + 1, :t - 1, -:t]) t;
\set VERBOSITY terse
SELECT interlock.assert_lease('mine', :other);
SELECT interlock.assert_lease('mine', 0);
SELECT interlock.assert_lease('mine', -1);
SELECT interlock.assert_lease('nobody has ever had it', 1);
SELECT count(*) FROM interlock.leases;
SELECT release_all();
SELECT * FROM try_all(ARRAY['renew_lease(''k'', NULL)', 'release_lease(''k'', NULL)', 'assert_lease(''k'', NULL)']);

-- capacity
SELECT * FROM try_all(ARRAY['acquire_permit(''k'', NULL)', 'acquire_permit(''k'', 0)', 'acquire_permit(''k'', -1)', 'acquire_permit(''k'', 1)', 'acquire_permit(''k'', 2147483647)', 'acquire_permit(''k'', -2147483648)']);
SELECT left(try('acquire_permit(''k'')'), 5) AS answer; -- the words are the server's

-- mode and bind
SELECT * FROM try_all(ARRAY['acquire_lease(''k'', mode => NULL)', 'acquire_lease(''k'', mode => '''')', 'acquire_lease(''k'', mode => ''Exclusive'')', 'acquire_lease(''k'', mode => ''permit'')', 'acquire_lease(''k'', mode => ''exclusive '')',
    'acquire_lease(''k'', mode => repeat(''x'', 100))', 'acquire_lease(''k'', mode => ''"%s"'')', 'acquire_lease(''k'', bind => NULL)', 'acquire_lease(''k'', bind => '''')', 'acquire_lease(''k'', bind => ''transaction'')', 'acquire_lease(''k'', bind => ''TTL'')']);

-- holder
SELECT * FROM try_all(ARRAY['acquire_lease(''k'', holder => '''')', 'acquire_lease(''k'', holder => '' '')', 'acquire_lease(''k'', holder => repeat(''h'', 255))', 'acquire_lease(''k'', holder => repeat(''h'', 256))', 'acquire_lease(''k'', holder => repeat(''é'', 127))',
    'acquire_lease(''k'', holder => repeat(''é'', 128))', 'acquire_permit(''k'', 1, holder => '''')', 'acquire_permit(''k'', 1, holder => repeat(''h'', 256))', 'acquire_leases(''{k}'', holder => '''')', 'acquire_leases(''{k}'', holder => repeat(''h'', 256))']);
\x off
SELECT outcome, length(holder), holder = repeat('é', 127) || 'x' AS as_given FROM interlock.acquire_lease('long holder', '1 min', holder => repeat('é', 127) || 'x');
SELECT outcome, holder FROM interlock.acquire_lease('quoted holder', holder => 'O''Brien "Éva" \ %s' || E'\n') l;
SELECT outcome, holder FROM interlock.acquire_lease('quoted holder', holder => 'other');
SELECT key, length(holder), octet_length(holder) FROM interlock.leases ORDER BY key;
SELECT interlock.break_lease('quoted holder', 'O''Brien; DROP TABLE "x"; --');
SELECT holder, reason FROM interlock.lease_audit;
DELETE FROM interlock.lease_audit;
SELECT release_all();
\x on
SELECT * FROM try_all(ARRAY['break_lease(''k'', NULL)', 'break_lease(''k'', '''')', 'break_lease(''k'', ''nobody has it'')']);

-- several keys
SELECT * FROM try_all(ARRAY['acquire_leases(NULL)', 'acquire_leases(''{}'')', 'acquire_leases(''{NULL}'')', 'acquire_leases(''{a,NULL,b}'')', 'acquire_leases(''{a,""}'')', 'acquire_leases(''{a,a}'')', 'acquire_leases(''{}'', NULL)', 'acquire_leases(''{}'', wait => ''-1 s'')',
    'acquire_leases(''{}'', holder => '''')', 'acquire_leases(ARRAY[''a'', repeat(''x'', 1025)])', 'acquire_leases(''[5:6]={a,b}'')', 'acquire_leases(''{{a,b},{c,a/x}}'')', 'acquire_leases(array_fill(''a''::text, ARRAY[10001]))']);
SELECT count(*) FROM interlock.leases;

-- very many: all, or none for one that is held, and each of them can be given back
\x off
CREATE TABLE many AS SELECT array_agg('many' || n ORDER BY n DESC) AS keys FROM generate_series(1, 10000) n;
CREATE TABLE got AS SELECT outcome, tokens, expires_at FROM many, LATERAL interlock.acquire_leases(keys, '1 min');
SELECT outcome, cardinality(tokens), (SELECT count(DISTINCT t) FROM unnest(tokens) t) AS distinct_tokens FROM got;
SELECT count(*) FILTER (WHERE l.token = t.token) AS matching FROM many, got, LATERAL unnest(keys, tokens) t(key, token) LEFT JOIN interlock.leases l USING (key);
SELECT outcome, tokens, blocked_by FROM interlock.acquire_leases('{a,many5000,z}');
SELECT release_all();
SELECT outcome FROM interlock.acquire_lease('many77', '1 min', holder => 'in the way');
SELECT outcome, tokens, blocked_by, holder FROM many, LATERAL interlock.acquire_leases(keys, '1 min');
SELECT outcome, blocked_by FROM many, LATERAL interlock.acquire_leases(keys, '1 min', wait => '50 ms');
SELECT key FROM interlock.leases;
SELECT release_all();
SELECT outcome, cardinality(tokens) FROM many, LATERAL interlock.acquire_leases(keys[:3000] || keys[:3000] || keys[:3000], '1 min', wait => '1 min');
SELECT release_all();
SELECT count(*) FROM generate_series(1, 10000) n, LATERAL interlock.acquire_lease('one path/' || n % 100 || '/' || n, '1 min') l WHERE l.outcome = 'acquired';
SELECT outcome FROM interlock.acquire_lease('one path');
SELECT release_all();
SELECT outcome FROM interlock.acquire_lease('one path');
SELECT release_all();

-- calls that fit no function
SELECT interlock.acquire_lease(7);
SELECT interlock.release_lease('k', '1x');
SELECT interlock.release_lease('k', 9223372036854775808);
SELECT interlock.acquire_lease('k', ttl => '30'::text);
SELECT count(*) FROM interlock.leases;
DROP SCHEMA lease_input CASCADE;
