-- Documents with a total, and their lines. Every total that was saved is noted, with the sum of the lines at that moment.
CREATE TABLE doc (id int PRIMARY KEY, total int NOT NULL DEFAULT 0, version bigint NOT NULL DEFAULT 1);
CREATE TABLE line (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, doc_id int NOT NULL REFERENCES doc, price int NOT NULL);
CREATE TABLE saved (id int, total int, lines int);
CREATE INDEX ON line (doc_id);
INSERT INTO doc SELECT generate_series(1, 20);
