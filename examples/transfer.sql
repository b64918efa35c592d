-- Money moves between two wallets, whatever others do at the same time.
CREATE TABLE wallet (id int PRIMARY KEY, balance int NOT NULL CHECK (balance >= 0));
INSERT INTO wallet VALUES (1, 1000), (2, 1000);

-- both wallets, in one order, for at most two seconds
BEGIN;
SELECT key FROM interlock.select_for_update('wallet', '{2,1}', wait => '2 s');
SELECT balance >= 700 AS enough FROM wallet WHERE id = 1 \gset
\if :enough
UPDATE wallet SET balance = balance - 700 WHERE id = 1;
UPDATE wallet SET balance = balance + 700 WHERE id = 2;
\endif
COMMIT;

-- a job that must not run twice at a time, whichever server of the application starts it
SELECT interlock.try_lock_keys('{nightly report}', scope => 'session') AS mine \gset
\if :mine
SELECT sum(balance) AS total FROM wallet;
SELECT interlock.unlock_keys('{nightly report}');
\endif
