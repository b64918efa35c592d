-- 100 pieces of one item, and the orders for them.
CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL);
CREATE TABLE purchase (buyer int, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE sold_out (buyer int);
CREATE SEQUENCE next_buyer;
INSERT INTO item VALUES (7, 100);
