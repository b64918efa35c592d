-- One report that is made anew at every tick, by one of the workers; and what happens to some of them in the middle of it.
CREATE TABLE report (tick int, worker int);
INSERT INTO report VALUES (0, 0);
CREATE TABLE made (tick int, worker int, at timestamptz DEFAULT clock_timestamp());
CREATE TABLE accident (tick int PRIMARY KEY, signal text, worker int, at timestamptz);

CREATE TABLE overwritten (was int, is_now int);
CREATE FUNCTION note_overwritten() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO overwritten VALUES (OLD.tick, NEW.tick);
    RETURN NULL;
END $$;
CREATE TRIGGER note_overwritten AFTER UPDATE ON report FOR EACH ROW WHEN (NEW.tick < OLD.tick) EXECUTE FUNCTION note_overwritten();

-- SET key value NX EX ttl, as in Redis, tried again and again for two seconds
CREATE TABLE redis (key text PRIMARY KEY, value text, expires_at timestamptz);
CREATE PROCEDURE redis_lock(lock_key text, holder text, ttl interval, INOUT mine boolean DEFAULT false) LANGUAGE plpgsql AS $$
DECLARE give_up timestamptz := clock_timestamp() + interval '2 s';
BEGIN
    LOOP
        INSERT INTO redis VALUES (lock_key, holder, clock_timestamp() + ttl)
            ON CONFLICT (key) DO UPDATE SET value = holder, expires_at = clock_timestamp() + ttl WHERE redis.expires_at < clock_timestamp();
        mine := FOUND;
        COMMIT;
        EXIT WHEN mine OR clock_timestamp() > give_up;
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$;
