-- HIS-20: a role's default writer, for clients that cannot call set_writer in each transaction.
BEGIN;
SELECT plan(35);
CREATE ROLE default_importer;
CREATE ROLE default_member IN ROLE default_importer;
CREATE ROLE default_plain;
CREATE TABLE product (id int PRIMARY KEY, text text, price int);
SELECT interlock.grant_writer('importer', 'default_importer');
SELECT interlock.own_columns('product', 'importer', '{price}');
SELECT interlock.enable_history('product');
INSERT INTO product VALUES (1, 'a', 1);
GRANT SELECT, UPDATE ON product TO default_importer, default_plain;
CREATE FUNCTION as_role(role name, statement text) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE answer text;
    BEGIN
        PERFORM set_config('role', role, true);
        EXECUTE statement INTO answer;
        PERFORM set_config('role', 'none', true);
        RETURN answer;
    EXCEPTION WHEN OTHERS THEN
        RETURN SQLSTATE;
    END $$;
CREATE FUNCTION price(role name) RETURNS text LANGUAGE sql AS $$
    SELECT as_role(role, 'UPDATE product SET price = price + 1 RETURNING price') $$;

SELECT is(price('default_importer'), 'IL007', 'a grant alone is no default');
SELECT is(as_role('default_importer', 'SELECT interlock.current_writer()'), NULL, 'no writer');
SELECT interlock.grant_writer('importer', 'default_importer', is_default => true);
SELECT is(as_role('default_importer', 'SELECT interlock.current_writer()'), 'importer', 'a default');
SELECT is(price('default_importer'), '2', 'the role''s own columns');
SELECT results_eq('SELECT writer, writer_from, changed_by FROM product_history ORDER BY id DESC LIMIT 1', $$VALUES ('importer', 'role', 'default_importer')$$,
    'the entry says where the writer is from');
SELECT is(price('default_member'), 'IL007', 'a member has no default');
SELECT is(as_role('default_member', 'SELECT interlock.set_writer(''importer'')'), '', 'but the writer');
SELECT is(price('default_plain'), 'IL007', 'nor has any other role');
SELECT is(interlock.current_writer(), NULL, 'nor a superuser, who is a member of all');

-- what is set counts before it
SELECT interlock.grant_writer('other', 'default_importer');
SELECT is(as_role('default_importer', $$SELECT interlock.set_writer('other')$$), '', 'set');
SELECT is(as_role('default_importer', 'SELECT interlock.current_writer()'), 'other', 'what is set counts');
SELECT is(price('default_importer'), 'IL007', 'and not the default');
SELECT is(as_role('default_importer', $$SELECT interlock.set_writer(NULL)$$), '', 'set to none');
SELECT is(as_role('default_importer', 'SELECT interlock.current_writer()'), NULL, 'none counts, too');

-- one for each role
SELECT throws_ok($$SELECT interlock.grant_writer('other', 'default_importer', is_default => true)$$, '55000',
    'role "default_importer" has the default writer "importer" already');
SELECT lives_ok($$SELECT interlock.grant_writer('importer', 'default_importer', true, true)$$, 'the same again');
SELECT results_eq('SELECT writer COLLATE "default", may_force, is_default FROM interlock.writer_grant ORDER BY 1', $$VALUES ('importer', true, true), ('other', false, false)$$,
    'the grants');
SELECT throws_ok($$INSERT INTO interlock.writer_grant VALUES ('third', 'default_importer', false, true, 'x')$$, '23505', NULL, 'as the index says');
SELECT throws_ok($$SELECT interlock.grant_writer('other', 'public', is_default => true)$$, '22023', 'argument "is_default" must be false for a grant to everybody');
SELECT throws_ok($$SELECT interlock.grant_writer('other', 'nosuch', is_default => true)$$, '42704');
SELECT throws_ok($$SELECT interlock.grant_writer('other', 'default_plain', is_default => NULL)$$, '22004');
SELECT is(as_role('default_plain', $$SELECT interlock.grant_writer('importer', 'default_plain', is_default => true)$$), '42501', 'nobody grants himself a default');

-- and a default does not force
CREATE TABLE owned (id int PRIMARY KEY, a int);
INSERT INTO owned VALUES (1, 1);
GRANT ALL ON owned TO default_importer;
SELECT interlock.own_columns('owned', 'somebody', '{a}');
COMMIT;
BEGIN;
SELECT is(as_role('default_importer', 'UPDATE owned SET a = 2 RETURNING a'), 'IL007', 'not even with may_force');

-- SECURITY DEFINER functions
CREATE FUNCTION definer_writer() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT interlock.current_writer()';
ALTER FUNCTION definer_writer() OWNER TO default_importer;
SELECT is(as_role('default_plain', 'SELECT definer_writer()'), 'importer', 'a function of the role writes as its default');
SELECT interlock.grant_writer('plain', 'default_plain', is_default => true);
SELECT is(as_role('default_plain', 'SELECT definer_writer()'), 'importer', 'also for a caller with another one');
ALTER FUNCTION definer_writer() OWNER TO default_member;
SELECT is(as_role('default_plain', 'SELECT definer_writer()'), 'plain', 'one of a role without a default writes as its caller''s');

-- away with it
SAVEPOINT before;
SELECT interlock.grant_writer('importer', 'default_importer');
SELECT is(as_role('default_importer', 'SELECT interlock.current_writer()'), NULL, 'granted again without it');
ROLLBACK TO before;
SELECT is(as_role('default_importer', 'SELECT interlock.current_writer()'), 'importer', 'rolled back');
SELECT interlock.revoke_writer('importer', 'default_importer');
SELECT is(as_role('default_importer', 'SELECT interlock.current_writer()'), NULL, 'revoked');
SELECT lives_ok($$SELECT interlock.grant_writer('other', 'default_importer', is_default => true)$$, 'another one then');
SELECT is(as_role('default_importer', 'SELECT interlock.current_writer()'), 'other', 'which counts');
ALTER ROLE default_importer RENAME TO default_renamed;
SELECT is(as_role('default_renamed', 'SELECT interlock.current_writer()'), NULL, 'a role of another name has none');
ALTER ROLE default_renamed RENAME TO default_importer;
SELECT is(as_role('default_importer', 'SELECT interlock.current_writer()'), 'other', 'and has it back with its name');

-- what a schema of another name keeps: protection without statements of ours
ALTER SCHEMA interlock RENAME TO elsewhere;
SELECT is(as_role('default_importer', 'SELECT elsewhere.current_writer()'), 'other', 'OPS-3: in a renamed schema');
ALTER SCHEMA elsewhere RENAME TO interlock;
SELECT interlock.revoke_writer('other', 'default_importer'), interlock.revoke_writer('plain', 'default_plain');
DROP FUNCTION definer_writer();
DROP TABLE product, product_history, owned;
DROP FUNCTION price(name), as_role(name, text);
DROP ROLE default_importer, default_member, default_plain;
SELECT is((SELECT count(*) FROM interlock.writer_grant), 0::bigint, 'nothing is left');
SELECT * FROM finish();
COMMIT;
