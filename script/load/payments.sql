-- Payments, what was charged for them, and a hand-made table of those that are done.
CREATE TABLE charge (payment int);
CREATE TABLE processed (payment int);
CREATE TABLE imported (part int);
