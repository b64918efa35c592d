-- 100 pieces of each of six articles, carts of three of them that last for 20 ms, and what is sold.
CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL);
CREATE TABLE cart (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, first_item int NOT NULL, until timestamptz NOT NULL);
CREATE TABLE sold (item int NOT NULL);
CREATE TABLE too_late (first_item int NOT NULL);
INSERT INTO item SELECT i, 100 FROM generate_series(1, 6) i;
