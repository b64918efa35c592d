-- A marker whose time is over is released by the sweeper, which is then off again.
SELECT interlock.lock_row('doc', 1, 'ends soon', '1 s');
ALTER SYSTEM SET interlock.sweeper = on;
SELECT pg_reload_conf();
DO $$
BEGIN
    FOR i IN 1 .. 3000 LOOP
        EXIT WHEN NOT EXISTS (SELECT FROM interlock.row_locks WHERE holder = 'ends soon');
        COMMIT;
        PERFORM pg_sleep(0.1);
    END LOOP;
    IF EXISTS (SELECT FROM interlock.row_locks WHERE holder = 'ends soon') THEN
        RAISE EXCEPTION 'the sweeper releases nothing';
    END IF;
END $$;
ALTER SYSTEM SET interlock.sweeper = off;
SELECT pg_reload_conf();
