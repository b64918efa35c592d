-- A queue of jobs. By hand a worker marks the next one as running and deletes it when it is done.
CREATE TABLE job (id int PRIMARY KEY, status text NOT NULL DEFAULT 'waiting');
CREATE TABLE done (id int, worker int);
INSERT INTO job SELECT generate_series(1, 400);
