-- Writers: who a transaction writes as.
CREATE ROLE writer_app;
CREATE ROLE writer_member IN ROLE writer_app;
CREATE ROLE writer_stranger;
CREATE ROLE "Writer Odd";

SELECT interlock.grant_writer('importer', 'writer_app');
SELECT interlock.grant_writer('editor', 'writer_app', true);
SELECT interlock.grant_writer('Robot "7"', 'Writer Odd');
SELECT interlock.grant_writer('anyone', 'public');
SELECT writer, role_name, may_force FROM interlock.writer_grant ORDER BY 1, 2;

-- For the transaction only (OWN-4), as members of the role, and as superuser without a grant.
SET ROLE writer_member;
BEGIN;
SELECT interlock.set_writer('importer'), interlock.current_writer();
SELECT interlock.current_writer();
COMMIT;
SELECT interlock.current_writer();
BEGIN;
SELECT interlock.set_writer('importer');
ROLLBACK;
SELECT interlock.current_writer();
RESET ROLE;
BEGIN;
SELECT interlock.set_writer('nobody knows'), interlock.current_writer();
COMMIT;

-- Savepoints: it follows their rollback, and nobody again is possible.
BEGIN;
SELECT interlock.set_writer('importer');
SAVEPOINT one;
SELECT interlock.set_writer('editor'), interlock.current_writer();
ROLLBACK TO one;
SELECT interlock.current_writer();
SAVEPOINT two;
SELECT interlock.set_writer('editor');
RELEASE two;
SELECT interlock.current_writer();
SELECT interlock.set_writer(NULL), interlock.current_writer();
COMMIT;

-- Forged (OWN-4): by nobody who was not granted it, and not by a setting.
SET ROLE writer_stranger;
SELECT interlock.set_writer('importer');
SELECT interlock.set_writer('unknown');
SELECT interlock.set_writer('anyone');
SET interlock.writers = '10 ! importer';
SELECT set_config('interlock.writers', '10 ! importer', true);
SET interlock.writer = 'importer';
SELECT interlock.grant_writer('importer', 'writer_stranger');
SELECT interlock.revoke_writer('importer', 'writer_app');
TABLE interlock.writer_grant;
RESET ROLE;
ALTER ROLE writer_stranger SET interlock.writers = '10 ! importer';

-- Force needs its own grant.
SET ROLE writer_app;
SELECT interlock.set_writer('importer', force => true);
SELECT interlock.set_writer('editor', force => true);
RESET ROLE;
SELECT interlock.grant_writer('editor', 'writer_app');
SET ROLE writer_app;
SELECT interlock.set_writer('editor', force => true);
RESET ROLE;

-- What a SECURITY DEFINER function says counts inside it, and not for its caller afterwards.
CREATE SCHEMA writer_test;
GRANT ALL ON SCHEMA writer_test TO PUBLIC;
SET ROLE writer_app;
CREATE FUNCTION writer_test.as_importer() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM interlock.set_writer('importer');
    RETURN interlock.current_writer();
END $$;
CREATE FUNCTION writer_test.who() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT interlock.current_writer()';
SET ROLE writer_stranger;
BEGIN;
SELECT writer_test.as_importer(), interlock.current_writer();
SELECT interlock.current_writer();
SELECT writer_test.who();
COMMIT;
-- It does not take the caller's away either, and nobody is somebody else there.
BEGIN;
SELECT interlock.set_writer('anyone');
SELECT writer_test.as_importer(), interlock.current_writer();
SELECT interlock.current_writer(), writer_test.who();
SELECT interlock.set_writer(NULL), interlock.current_writer();
SELECT writer_test.who();
COMMIT;
-- What is said outside counts inside, whoever owns the function; but not after SET ROLE.
BEGIN;
SELECT interlock.set_writer('anyone');
SELECT writer_test.who();
SET LOCAL ROLE writer_app;
SELECT interlock.current_writer();
COMMIT;
RESET ROLE;

-- Bad input.
SELECT interlock.set_writer('');
SELECT interlock.set_writer(repeat('w', 257));
SELECT interlock.set_writer(E'two\nlines');
SELECT interlock.set_writer('editor', NULL);
SELECT interlock.grant_writer(NULL, 'writer_app');
SELECT interlock.grant_writer('', 'writer_app');
SELECT interlock.grant_writer('editor', NULL);
SELECT interlock.grant_writer('editor', 'writer_missing');
SELECT interlock.grant_writer('editor', 'writer_app', NULL);
SELECT interlock.revoke_writer('editor', 'writer_stranger');
SELECT interlock.revoke_writer(NULL, 'writer_app');

-- A revoked grant is gone at once; a dropped role's can be revoked.
SELECT interlock.revoke_writer('importer', 'writer_app');
SET ROLE writer_app;
SELECT interlock.set_writer('importer');
RESET ROLE;
DROP SCHEMA writer_test CASCADE;
DROP OWNED BY writer_app;
DROP ROLE writer_app, writer_member, writer_stranger, "Writer Odd";
SELECT interlock.revoke_writer('Robot "7"', 'Writer Odd');
SELECT interlock.revoke_writer('editor', 'writer_app');
SELECT interlock.revoke_writer('anyone', 'public');
TABLE interlock.writer_grant;
