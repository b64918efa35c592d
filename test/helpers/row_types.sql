-- fate(type, value, other): what a row with that value comes back as, in each place where a row becomes json and is a row
-- again. Returns the places where the value is another one, and errors; none, as it should be. `same` says when two values
-- are the same, and is the same bytes where it is left out.
CREATE FUNCTION fate(type text, value text, other text, same text DEFAULT 'record_image_eq(ROW(k.v), ROW(o.v))') RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    places text[] := '{}';
    place text;
    steps text[] := ARRAY[
        -- another column has changed: the value is not written
        'revert a title', $s$UPDATE kind SET title = 'b'; SELECT interlock.revert_row('kind', 1, to_version => 1)$s$,
        'not written', $s$SELECT 1 / (changed = '{title,version}')::int FROM (SELECT changed FROM kind_history ORDER BY id DESC LIMIT 1) last$s$,
        -- the value itself has changed
        'revert the value', $s$UPDATE kind SET v = $s$ || other || $s$; SELECT interlock.revert_row('kind', 1, to_version => 1)$s$,
        'written', $s$SELECT 1 / (changed @> '{v}')::int FROM (SELECT changed FROM kind_history ORDER BY id DESC LIMIT 1) last$s$,
        'revert to it by time', $s$CREATE TEMP TABLE at AS SELECT clock_timestamp() AS at; UPDATE kind SET v = $s$ || other || $s$;
            SELECT interlock.revert_row('kind', 1, at => (SELECT at FROM at)); DROP TABLE at$s$,
        -- a conflict shows the row, and a client sends it back
        'a conflict', $s$CREATE TEMP TABLE shown AS SELECT * FROM interlock.try_versioned_update('kind', 1, 0, '{"title": "x"}');
            SELECT 1 / (outcome = 'conflict')::int FROM shown$s$,
        'sent back', $s$UPDATE kind SET v = $s$ || other || $s$; SELECT interlock.versioned_update('kind', 1, (SELECT version FROM kind),
            jsonb_build_object('v', current->'v')) FROM shown$s$,
        'inserted', $s$SELECT interlock.versioned_upsert('kind', 2, NULL::bigint, jsonb_build_object('v', current->'v')) FROM shown;
            UPDATE kind k SET v = o.v FROM kind o WHERE k.id = 1 AND o.id = 2; DELETE FROM kind WHERE id = 2$s$,
        'in many', $s$UPDATE kind SET v = $s$ || other || $s$; SELECT interlock.versioned_update_many('kind', jsonb_build_array(jsonb_build_object('key', 1, 'version',
            (SELECT version FROM kind), 'changes', jsonb_build_object('v', current->'v')))) FROM shown$s$,
        -- a merge: neither side has changed the value, which is in the base, and in the changes too
        'merge', $s$UPDATE kind SET title = 'theirs'; SELECT 1 / (m.outcome = 'merged')::int FROM shown, interlock.try_versioned_update('kind', 1, 0, '{"note": "mine"}', current, 'merge') m$s$,
        'merge of all', $s$UPDATE kind SET title = 'theirs'; SELECT 1 / (m.outcome = 'merged')::int FROM shown, interlock.try_versioned_update('kind', 1, 0, current - '{id,version,title}'::text[], current, 'merge') m$s$,
        'a retry', $s$SELECT interlock.update_with_retry('kind', 1, 'as_it_is(jsonb,jsonb)')$s$,
        'forgotten', 'DROP TABLE shown'];
    good boolean;
BEGIN
    EXECUTE format('CREATE TABLE kind (id int PRIMARY KEY, title text, note text, v %s); CREATE TABLE original (v %1$s)', type);
    EXECUTE format('INSERT INTO original VALUES (%s)', value);
    CREATE FUNCTION as_it_is(current jsonb, jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT current - ''version''::text';
    PERFORM interlock.enable_versioning('kind'), interlock.enable_history('kind');
    INSERT INTO kind SELECT 1, 'a', 'a', v FROM original;
    FOR i IN 1 .. array_length(steps, 1) BY 2 LOOP
        place := steps[i];
        BEGIN
            EXECUTE steps[i + 1];
            EXECUTE format('SELECT count(*) = 1 FROM kind k, original o WHERE (%s) OR (k.v IS NULL AND o.v IS NULL)', same) INTO good;
            IF NOT good THEN
                EXECUTE format('SELECT %L || v::text FROM kind', place || ': ') INTO place;
                places := places || place;
                UPDATE kind SET v = o.v FROM original o;
            END IF;
        EXCEPTION WHEN OTHERS THEN
            places := places || format('%s: %s %s', place, sqlstate, sqlerrm);
        END;
    END LOOP;
    DROP TABLE kind, kind_history, original CASCADE;
    DROP FUNCTION as_it_is;
    RETURN places;
EXCEPTION WHEN OTHERS THEN
    RETURN places || format('%s %s', sqlstate, sqlerrm);
END $$;
