-- Keys and states of domains, and columns that the server alone fills in: the same without a statement and with
-- interlock.direct_updates = off, which makes each write a statement.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA direct_types;
SET search_path = direct_types;
CREATE TYPE mood AS ENUM ('low', 'high');
CREATE DOMAIN mood_domain AS mood;
CREATE DOMAIN domain_of_domain AS mood_domain;
CREATE DOMAIN text_domain AS text COLLATE "C";
CREATE DOMAIN int_domain AS int;

-- What the verb answers or raises, and leaves behind.
CREATE FUNCTION effect(setup text, verb text, directly boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text; state text; stored text;
BEGIN
    DROP TABLE IF EXISTS t;
    CREATE TABLE t (id int PRIMARY KEY, a int, version bigint NOT NULL DEFAULT 1);
    INSERT INTO t VALUES (1, 1);
    EXECUTE setup;
    PERFORM set_config('interlock.direct_updates', directly::text, true);
    BEGIN
        EXECUTE verb INTO answer;
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS answer = MESSAGE_TEXT, state = RETURNED_SQLSTATE;
    END;
    SELECT string_agg((to_jsonb(t) - '{lock_time,lock_until}'::text[])::text, E'\n') INTO stored FROM t;
    RETURN concat_ws(E'\n', concat_ws(' ', state, answer), stored);
END $$;
CREATE FUNCTION try(setup text, verb text, OUT same boolean, OUT effect text) LANGUAGE plpgsql AS $$
DECLARE by_statement text;
BEGIN
    effect := effect(setup, verb, true);
    by_statement := effect(setup, verb, false);
    same := effect = by_statement;
    IF NOT same THEN effect := effect || E'\n<>\n' || by_statement; END IF;
END $$;

-- states: a domain over an enum, and one whose collation is not the column's
SELECT kind, tried.* FROM (VALUES ('mood_domain', 'low', 'high'), ('domain_of_domain', 'low', 'high'), ('text_domain', 'one', 'two'), ('text_domain COLLATE "POSIX"', 'one', 'two'), ('int_domain', '1', '2')) kinds (kind, one, two),
    LATERAL try(format($$ALTER TABLE t ADD s %s DEFAULT %L; SELECT interlock.define_transitions('t', 's', '{"%s": ["%s"]}')$$, kind, one, one, two), format($$SELECT interlock.try_transition('t', 1, %L, %L, '{"a": 7}')$$, one, two)) tried
    ORDER BY kind COLLATE "C";

-- keys: the same, alone and as the first of two columns
SELECT kind, verb, tried.* FROM (VALUES ('mood_domain', 'low'), ('domain_of_domain', 'low'), ('text_domain', 'one'), ('text_domain COLLATE "POSIX"', 'one'), ('int_domain', '1')) kinds (kind, one),
    (VALUES ($$SELECT interlock.versioned_update('t', %L::text, 1, '{"a": 7}')$$), ($$SELECT interlock.try_versioned_update('t', %L::text, 2, '{"a": 7}')$$), ($$SELECT interlock.try_versioned_delete('t', %L::text, 1)$$),
        ($$SELECT current FROM interlock.try_versioned_update('t', jsonb_build_object('k', %L), 2, '{"a": 7}')$$)) verbs (verb),
    LATERAL try(format($$ALTER TABLE t ADD k %s DEFAULT %L, DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (k); SELECT interlock.enable_versioning('t')$$, kind, one), format(verb, one)) tried
    ORDER BY kind COLLATE "C", verb COLLATE "C";
SELECT * FROM try($$ALTER TABLE t ADD k mood_domain DEFAULT 'low', DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (k, id); SELECT interlock.enable_versioning('t')$$,
    $$SELECT interlock.versioned_update('t', '{"id": 1, "k": "low"}'::jsonb, 1, '{"a": 7}')$$);
-- the statement finds the row by the index
CREATE TABLE by_index (k mood_domain PRIMARY KEY, version bigint NOT NULL DEFAULT 1);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT FROM by_index t WHERE t.k::mood = 'low';
RESET enable_seqscan;

DROP SCHEMA direct_types CASCADE;
