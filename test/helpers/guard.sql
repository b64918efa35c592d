-- What anybody does first, on an installation that may lack something: prints "2 conflict 1 acquired".
\set ON_ERROR_STOP on
CREATE TABLE config (id int PRIMARY KEY, title text);
INSERT INTO config VALUES (1, 'first');
SELECT FROM interlock.enable_versioning('config'), interlock.enable_history('config') \g /dev/null
SELECT interlock.versioned_update('config', 1, 1, '{"title": "second"}') AS version \gset
SELECT outcome AS late FROM interlock.try_versioned_update('config', 1, 1, '{"title": "third"}') \gset
SELECT count(*) AS entries FROM interlock.row_history('config', 1) \gset
SELECT outcome AS lease FROM interlock.acquire_lease('job', '1 hour', holder => 'worker') \gset
\qecho :version :late :entries :lease
