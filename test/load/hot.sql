-- Forty rows, and a line for each time that somebody wrote one of them.
CREATE TABLE hot (id int PRIMARY KEY, n bigint NOT NULL DEFAULT 0, version bigint NOT NULL DEFAULT 1);
CREATE TABLE won (id int);
INSERT INTO hot SELECT generate_series(1, 40);
