-- CFG-2: what configuration returns makes another table the same, and changes nothing on its own.
BEGIN;
SELECT * FROM no_plan();
SET client_min_messages = error;

-- Every concept in several forms, and not at all: every combination of two of them, and all with each.
CREATE TEMP TABLE form (member text, n int, settings jsonb, PRIMARY KEY (member, n));
INSERT INTO form VALUES
    ('versioning', 1, '{}'), ('versioning', 2, '{"version_column": "v", "ignore_columns": ["b", "a"], "blind_updates": "warn"}'), ('versioning', 3, '{"version_column": "at", "blind_updates": "reject", "unchanged": "keep"}'),
    ('transitions', 1, '{"status": {"transitions": {"draft": ["public", "gone"], "public": []}}}'),
    ('transitions', 2, '{"status": {"transitions": {}, "initial": [], "on_repeat": "reject"}, "n": {"transitions": {"2": [1, 3], "1": ["02"]}, "initial": [2, 1]}, "flag": {"transitions": {"true": [false]}}}'),
    ('marker', 1, '{}'), ('marker', 2, '{"ttl": "1 mon 1 day 1.5 s", "enforce": false, "notify": "full", "status_column": "s", "holder_column": "h", "time_column": "t", "until_column": "u", "reason_column": "r", "sweep_index": false, "take_over": "allow"}'),
    ('history', 1, '{}'), ('history', 2, '{"keep_versions": 7, "keep_for": 0.000001, "ignore_columns": ["c", "b"], "ignore_writers": ["z", "a b"], "notify": "on", "record_markers": true, "whole_every": 100}'),
    ('ownership', 1, '{"columns": {"c": {"writer": "x", "once_changed": true}}}'), ('ownership', 2, '{"groups": [["d", "c"]]}'),
    ('ownership', 3, '{"columns": {"c": {"writer": "x y", "on_violation": "skip"}, "d": {"strategy": "merge"}, "e": {"strategy": "skip"}}, "groups": [["e", "d"], ["c", "b"]]}'),
    ('require_lease', 1, '{"t/{id}": {}}'), ('require_lease', 2, '{"all": {"columns": ["d", "c"]}, "t/{id}/{{x}}": {}}');
INSERT INTO form SELECT DISTINCT member, 0, NULL::jsonb FROM form;

CREATE FUNCTION new_table(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %1$I CASCADE; DROP TABLE IF EXISTS %1$s_history', name);
    EXECUTE format('CREATE TABLE %I (id int PRIMARY KEY, at timestamptz, status text, n smallint, flag bool, a text, b text, c text, d int, e jsonb)', name);
END $$;

-- What is wrong with a copy; nothing if it is right.
CREATE FUNCTION copy(settings jsonb, before jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE original jsonb; again text;
BEGIN
    PERFORM new_table('t1'), new_table('t2');
    PERFORM interlock.configure('t1', settings);
    original := interlock.configuration('t1');
    IF (SELECT count(*) FROM jsonb_object_keys(original)) <> (SELECT count(*) FROM jsonb_object_keys(settings)) THEN RETURN 'not all of it: ' || original; END IF;
    SELECT string_agg(change, ' ') INTO again FROM (SELECT interlock.configure('t1', original) UNION ALL SELECT interlock.configure('t1', settings)) a (change);
    IF again IS NOT NULL THEN RETURN 'not the same again: ' || again; END IF;
    PERFORM interlock.configure('t2', before);
    PERFORM interlock.configure('t2', original);
    IF before = '{}' AND interlock.configuration('t2') <> original THEN RETURN 'another copy: ' || interlock.configuration('t2'); END IF;
    IF NOT interlock.configuration('t2') @> original OR EXISTS (
        SELECT FROM unnest('{versioning,marker,history}'::text[]) m WHERE original ? m AND interlock.configuration('t2')->m <> original->m) THEN RETURN 'another copy over others: ' || interlock.configuration('t2'); END IF;
    SELECT string_agg(change, ' ') INTO again FROM interlock.configure('t2', original) a (change);
    IF again IS NOT NULL THEN RETURN 'not the same again in the copy: ' || again; END IF;
    -- the statements by hand make the same
    PERFORM new_table('t1');
    FOR again IN SELECT change FROM interlock.configure('t1', original, true) d (change) LOOP EXECUTE again; END LOOP;
    IF interlock.configuration('t1') <> original THEN RETURN 'another one by hand: ' || interlock.configuration('t1'); END IF;
    PERFORM interlock.configure('t1', (SELECT jsonb_object_agg(k, NULL::jsonb) FROM jsonb_object_keys(original) k));
    IF interlock.configuration('t1') <> '{}' THEN RETURN 'not removed: ' || interlock.configuration('t1'); END IF;
    RETURN NULL;
END $$;

CREATE TEMP VIEW combination AS
SELECT jsonb_strip_nulls(jsonb_object_agg(l.member, l.settings)) || jsonb_strip_nulls(jsonb_object_agg(r.member, r.settings)) AS settings
FROM form l, form r WHERE l.member < r.member GROUP BY l.member, l.n, r.member, r.n;
SELECT is((SELECT count(DISTINCT settings) FROM combination), 96::bigint, 'combinations');
SELECT is_empty($$SELECT settings, copy(settings, '{}') FROM (SELECT DISTINCT settings FROM combination WHERE settings <> '{}') c WHERE copy(settings, '{}') IS NOT NULL$$, 'CFG-2: two concepts');

CREATE TEMP VIEW everything AS
SELECT jsonb_object_agg(member, settings) AS settings
FROM generate_series(1, 3) g (n), LATERAL (SELECT DISTINCT ON (member) member, settings FROM form WHERE form.n <= g.n AND form.n > 0 ORDER BY member, form.n DESC) f GROUP BY g.n;
SELECT is_empty($$SELECT settings, copy(settings, '{}') FROM everything WHERE copy(settings, '{}') IS NOT NULL$$, 'CFG-2: all concepts');
-- A version stays in its column.
SELECT is_empty($$SELECT settings, before, copy(settings, before)
    FROM (SELECT l.settings, r.settings || jsonb_build_object('versioning', (l.settings->'versioning') - '{blind_updates,ignore_columns}'::text[]) AS before FROM everything l, everything r WHERE l.settings <> r.settings) c
    WHERE copy(settings, before) IS NOT NULL$$, 'CFG-2: over other settings');

SELECT * FROM finish();
ROLLBACK;
