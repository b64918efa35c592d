-- 40 workers, each with a lease on its job; and what becomes of the leases when the server is killed and comes back.
CREATE EXTENSION pg_interlock;
CREATE TABLE job (id int PRIMARY KEY, key text, token bigint, expires_at timestamptz);
INSERT INTO job SELECT id, key, token, l.expires_at FROM generate_series(1, 40) id, concat('job:', id) key, interlock.acquire_lease(key, '4 s') l;

-- what a job's worker gets that renews, and what others get that ask for it; and whether its worker could count on the lease at that time
CREATE TABLE answer (id int, what text, at timestamptz, was_held boolean);

-- come_back: half of the workers, those of the even jobs, were killed too. The others renew, and somebody asks for every job again
-- and again, until the jobs of the dead are his.
CREATE PROCEDURE come_back() LANGUAGE plpgsql AS $$
DECLARE give_up timestamptz := clock_timestamp() + interval '2 min';
BEGIN
    WHILE (SELECT count(*) < 20 FROM answer WHERE what = 'acquired' AND id % 2 = 0) AND clock_timestamp() < give_up LOOP
        INSERT INTO answer SELECT id, outcome, clock_timestamp(), clock_timestamp() < job.expires_at
            FROM job, interlock.acquire_lease(key, '4 s') WHERE id NOT IN (SELECT id FROM answer WHERE what = 'acquired');
        WITH renewed AS MATERIALIZED (
            SELECT id, interlock.renew_lease(key, token, '4 s') AS until FROM job WHERE id % 2 = 1),
        kept AS (
            UPDATE job SET expires_at = until FROM renewed WHERE job.id = renewed.id AND until IS NOT NULL)
        INSERT INTO answer SELECT id, CASE WHEN until IS NULL THEN 'lost' ELSE 'renewed' END, clock_timestamp(), clock_timestamp() < expires_at
            FROM renewed JOIN job USING (id);
        COMMIT;
        PERFORM pg_sleep(0.1);
    END LOOP;
END $$;
