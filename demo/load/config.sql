-- Configuration rows that several administrators edit. Every save that was acknowledged is noted in `saved`.
CREATE TABLE config (id int PRIMARY KEY, n int NOT NULL DEFAULT 0, updated_time timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE saved (id int);
INSERT INTO config SELECT generate_series(1, 50);
