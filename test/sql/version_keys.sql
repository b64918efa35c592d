-- Keys name a row as the key by hand does
\set VERBOSITY terse
\set SHOW_CONTEXT never
-- a key that the column would round or cut is no other key
CREATE DOMAIN whole AS numeric(10,0);
CREATE DOMAIN short AS varchar(4);
CREATE TABLE nk (id numeric(10,0) PRIMARY KEY, a int);
CREATE TABLE tk (id timestamptz(0) PRIMARY KEY, a int);
CREATE TABLE dk (id whole PRIMARY KEY, a int);
CREATE TABLE vk (id varchar(4) PRIMARY KEY, a int);
CREATE TABLE sk (id short PRIMARY KEY, a int);
CREATE TABLE ck (id numeric(10,0), at timestamp(0), name char(4), tags varchar(2)[], doc jsonb, a int, PRIMARY KEY (id, at, name, tags, doc));
SELECT interlock.enable_versioning(t) FROM unnest('{nk,tk,dk,vk,sk,ck}'::regclass[]) t;
INSERT INTO nk VALUES (1), (2);
INSERT INTO dk VALUES (1), (2);
INSERT INTO tk VALUES ('2026-01-01 10:00:00+00'), ('2026-01-01 10:00:01+00');
INSERT INTO vk VALUES ('abcd');
INSERT INTO sk VALUES ('abcd');
INSERT INTO ck VALUES (2, '2026-01-01 10:00:01', 'ab', '{x,yy}', '{"k": "v"}');
SELECT interlock.versioned_update('nk', '1.6', 1, '{"a": 1}');
SELECT interlock.versioned_update('nk', 1.6, 1, '{"a": 1}');
SELECT interlock.versioned_update('nk', '{"id": 1.6}'::jsonb, 1, '{"a": 1}');
SELECT interlock.versioned_update('nk', '2.0', 1, '{"a": 1}');
SELECT interlock.versioned_delete('nk', '1.4', 1);
SELECT key, outcome FROM interlock.versioned_update_many('nk', '[{"key": 1.4, "version": 1, "changes": {"a": 2}},
    {"key": "1.4", "version": 1, "changes": {"a": 2}}, {"key": {"id": 1.4}, "version": 1, "changes": {"a": 2}}, {"key": 1.0, "version": 1, "changes": {"a": 3}}]');
SELECT interlock.versioned_update('dk', '1.6', 1, '{"a": 1}');
SELECT interlock.versioned_update('dk', '{"id": 1.6}'::jsonb, 1, '{"a": 1}');
SELECT interlock.versioned_update('dk', 2::whole, 1, '{"a": 1}'), interlock.versioned_update('dk', 2::numeric, 2, '{"a": 1}');
SELECT interlock.versioned_update('tk', '2026-01-01 10:00:00.6+00', 1, '{"a": 1}') AS t;
SELECT interlock.versioned_update('tk', '2026-01-01 10:00:00.4+00'::timestamptz, 1, '{"a": 1}') AS t;
SELECT interlock.versioned_update('tk', '2026-01-01 10:00:01+00', 1, '{"a": 1}');
SELECT outcome FROM interlock.try_versioned_update('vk', 'abcde', 1, '{"a": 1}');
SELECT outcome FROM interlock.try_versioned_update('vk', 'abcd   ', 1, '{"a": 1}');
SELECT outcome FROM interlock.try_versioned_update('sk', 'abcde', 1, '{"a": 1}');
SELECT interlock.versioned_update('sk', 'abcd', 1, '{"a": 1}'), interlock.versioned_update('sk', 'abcd'::short, 2, '{"a": 1}');
SELECT outcome FROM unnest(ARRAY[
    '{"id": 1.6, "at": "2026-01-01 10:00:01", "name": "ab", "tags": ["x", "yy"], "doc": {"k": "v"}}',
    '{"id": 2, "at": "2026-01-01 10:00:00.6", "name": "ab", "tags": ["x", "yy"], "doc": {"k": "v"}}',
    '{"id": 2, "at": "2026-01-01 10:00:01", "name": "ab", "tags": ["x", "yyy"], "doc": {"k": "v"}}',
    '{"id": 2, "at": "2026-01-01 10:00:01", "name": "abcde", "tags": ["x", "yy"], "doc": {"k": "v"}}',
    '{"id": 2, "at": "2026-01-01 10:00:01", "name": "ab", "tags": ["x", "yy"], "doc": "v"}',
    '{"id": 2, "at": "2026-01-01 10:00:01", "name": "ab", "tags": ["x", "yy"], "doc": {"k": "v"}}']) v, interlock.try_versioned_update('ck', v::jsonb, 1, '{"a": 1}');
SELECT interlock.versioned_update('ck', '{"id": "2", "at": "2026-01-01 10:00:01", "name": "ab  ", "tags": "{x,yy}", "doc": {"k": "v"}}', 2, '{"a": 2}');
SELECT id, a, version FROM nk UNION ALL SELECT id, a, version FROM dk ORDER BY 1, 2;

-- keys that two rows can have are none
CREATE TABLE later (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, a int);
SELECT interlock.enable_versioning('later');
BEGIN;
INSERT INTO later VALUES (1, 1), (1, 2);
\set VERBOSITY default
SELECT interlock.versioned_update('later', 1, 1, '{"a": 3}');
\set VERBOSITY terse
ROLLBACK;
ALTER TABLE later ADD other int NOT NULL UNIQUE DEFERRABLE, ADD third int NOT NULL UNIQUE;
INSERT INTO later VALUES (1, 1, 1, 2, 3);
SELECT interlock.versioned_update('later', 3, 1, '{"a": 3}');
CREATE TABLE part_unique (id int NOT NULL, a int);
CREATE UNIQUE INDEX ON part_unique ((id + 1));
CREATE UNIQUE INDEX ON part_unique (id) WHERE id > 0;
SELECT interlock.enable_versioning('part_unique');
SELECT interlock.versioned_update('part_unique', 1, 1, '{"a": 3}');
-- the rows of tables that inherit are not the table's
CREATE TABLE elder (id int PRIMARY KEY, status text, a int);
CREATE TABLE heir (b int) INHERITS (elder);
SELECT interlock.enable_versioning('elder');
SELECT interlock.define_transitions('elder', 'status', '{"x": ["y"]}');
INSERT INTO elder VALUES (1, 'x', 1);
INSERT INTO heir VALUES (1, 'x', 1), (1, 'x', 2), (2, 'x', 3);
SELECT interlock.versioned_update('elder', 1, 1, '{"a": 9}');
SELECT interlock.transition('elder', 1, 'x', 'y');
SELECT * FROM interlock.try_versioned_update('elder', 2, 1, '{"a": 9}');
SELECT outcome, state FROM interlock.try_transition('elder', 2, 'x', 'y');
SELECT outcome, attempts FROM interlock.update_with_retry('elder', 2, 'jsonb_concat(jsonb, jsonb)');
SELECT * FROM interlock.select_for_update('elder', '{1,2}'::int[]);
SELECT outcome FROM interlock.try_versioned_delete('elder', 1, 3);
SELECT tableoid::regclass, id, status, a, version FROM elder ORDER BY 1, 2, 4;
SELECT interlock.versioned_update('heir', 2, 1, '{"a": 9}');
ALTER TABLE heir ADD PRIMARY KEY (id, a);
SELECT interlock.enable_versioning('heir');
SELECT interlock.versioned_update('heir', '{"id": 2, "a": 3}', 1, '{"b": 9}');
DROP TABLE later, part_unique, elder, heir;

DROP TABLE nk, tk, dk, vk, sk, ck;
DROP DOMAIN whole, short;
