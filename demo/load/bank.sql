-- Accounts, and a note of every withdrawal that left one overdrawn.
CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL);
CREATE TABLE overdraft (id int, balance int);
INSERT INTO account SELECT g, 1000 FROM generate_series(1, 20) g;
ALTER DATABASE :DBNAME SET deadlock_timeout = '20 ms';
