-- The table behind leases: nobody writes it by hand, and logical replication brings nothing into it.
\set SHOW_CONTEXT never
\set VERBOSITY sqlstate
CREATE SCHEMA lease_store;
SET search_path = lease_store;
SELECT token AS mine FROM interlock.acquire_lease('lease_store', '1 h') \gset
SELECT count(*) AS rows FROM interlock_internal.lease_store \gset
SELECT rolsuper FROM pg_roles WHERE rolname = current_user;

INSERT INTO interlock_internal.lease_store VALUES ('\x00');
INSERT INTO interlock_internal.lease_store SELECT content FROM interlock_internal.lease_store;
UPDATE interlock_internal.lease_store SET content = '\x00';
DELETE FROM interlock_internal.lease_store;
TRUNCATE interlock_internal.lease_store;
COPY interlock_internal.lease_store FROM stdin;
\\x00
\.
MERGE INTO interlock_internal.lease_store USING (SELECT '\x00'::bytea AS content) x ON false WHEN NOT MATCHED THEN INSERT VALUES (content);
SELECT count(*) = :rows AS unchanged FROM interlock_internal.lease_store;

-- as a subscription writes: skipped, without an error that would stop it
SET session_replication_role = replica;
INSERT INTO interlock_internal.lease_store VALUES ('\x00');
INSERT INTO interlock_internal.lease_store SELECT content FROM interlock_internal.lease_store;
COPY interlock_internal.lease_store FROM stdin;
\\x00
\.
SELECT count(*) = :rows AS unchanged FROM interlock_internal.lease_store;
RESET session_replication_role;

SELECT interlock.renew_lease('lease_store', :mine, '2 h') IS NOT NULL AS renewed;
SELECT outcome FROM interlock.acquire_lease('lease_store');
SELECT interlock.release_lease('lease_store', :mine);
SELECT outcome, interlock.release_lease('lease_store', token) FROM interlock.acquire_lease('lease_store');
-- it has the secret of tokens: not for those who read everything
CREATE ROLE regress_lease_reader IN ROLE pg_read_all_data;
SET ROLE regress_lease_reader;
SELECT count(*) FROM interlock_internal.lease_store;
COPY interlock_internal.lease_store TO stdout;
RESET ROLE;
DROP ROLE regress_lease_reader;
-- it can be read, dumped and vacuumed
SELECT count(*) = :rows AS unchanged FROM interlock_internal.lease_store WHERE octet_length(content) > 0;
VACUUM interlock_internal.lease_store;
ANALYZE interlock_internal.lease_store;
VACUUM (FREEZE) interlock_internal.lease_store;
VACUUM (FULL) interlock_internal.lease_store;
SELECT count(*) = :rows AS unchanged FROM interlock_internal.lease_store;
SELECT outcome, interlock.release_lease('lease_store', token) FROM interlock.acquire_lease('lease_store', '1 h');
