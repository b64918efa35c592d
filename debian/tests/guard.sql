CREATE EXTENSION pg_interlock;

CREATE TABLE config (id int PRIMARY KEY, title text);
INSERT INTO config VALUES (1, 'old title');
SELECT interlock.enable_versioning('config');
SELECT interlock.versioned_update('config', 1, 1, '{"title": "new title"}');

DO $$
BEGIN
    BEGIN
        PERFORM interlock.versioned_update('config', 1, 1, '{"title": "another title"}');
        RAISE 'the second save got no conflict';
    EXCEPTION WHEN SQLSTATE 'IL001' THEN
    END;
    ASSERT (SELECT title FROM config) = 'new title';
    ASSERT (SELECT outcome FROM interlock.acquire_lease('report', 60)) = 'acquired';
END
$$;

-- The launcher needs a moment to find the database.
DO $$
BEGIN
    FOR attempt IN 1 .. 6000 LOOP
        EXIT WHEN EXISTS (SELECT FROM interlock.sweeper);
        PERFORM pg_sleep(0.1);
    END LOOP;
    ASSERT EXISTS (SELECT FROM interlock.sweeper);
END
$$;
