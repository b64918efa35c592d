-- VER-1: which statements are blind updates of a versioned table, by their shapes; each is run and rolled back
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE TABLE t (id int PRIMARY KEY, name text, version bigint DEFAULT 1, n int);
INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 1);
CREATE TABLE s (id int, version bigint, name text);
INSERT INTO s VALUES (1, 1, 'x'), (2, 1, 'y');
CREATE TABLE par (id int PRIMARY KEY, version bigint DEFAULT 1, a int);
CREATE TABLE chi () INHERITS (par);
INSERT INTO par VALUES (1, 1, 0);
INSERT INTO chi VALUES (2, 1, 0);
CREATE TABLE pt (id int, version bigint DEFAULT 1, a int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE pt1 PARTITION OF pt FOR VALUES FROM (0) TO (10);
-- a partition has columns at other places
CREATE TABLE pt2 (a int, gone int, id int NOT NULL, version bigint DEFAULT 1);
ALTER TABLE pt2 DROP COLUMN gone;
ALTER TABLE pt ATTACH PARTITION pt2 FOR VALUES FROM (10) TO (20);
INSERT INTO pt VALUES (1, 1, 0), (11, 1, 0);
SELECT interlock.enable_versioning(rel, blind_updates => 'reject') FROM unnest('{t,par,chi,pt}'::regclass[]) rel;
CREATE VIEW v AS SELECT id AS vid, version AS ver, name AS vname FROM t;
CREATE VIEW vnover AS SELECT id, name FROM t;
CREATE VIEW vb WITH (security_barrier) AS SELECT * FROM t WHERE id < 15;
CREATE FUNCTION f_sql() RETURNS void LANGUAGE sql AS 'UPDATE t SET name = ''f'' WHERE id = 1';
CREATE FUNCTION f_pl() RETURNS void LANGUAGE plpgsql AS 'BEGIN UPDATE t SET name = ''f'' WHERE id = 1; END';
CREATE FUNCTION f_pl2() RETURNS void LANGUAGE plpgsql AS 'BEGIN UPDATE t SET name = ''f'' WHERE id = 1 AND version = 1; END';
CREATE FUNCTION f_def() RETURNS void SECURITY DEFINER LANGUAGE plpgsql AS 'BEGIN UPDATE t SET name = ''f'' WHERE id = 1; END';
CREATE FUNCTION my_eq(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT $1 = $2';
CREATE FUNCTION iot() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE t SET name = new.name WHERE id = old.id; RETURN new; END';
CREATE VIEW vi AS SELECT id, name, version FROM t;
CREATE TRIGGER iot INSTEAD OF UPDATE ON vi FOR EACH ROW EXECUTE FUNCTION iot();
CREATE VIEW vr AS SELECT id, name, version FROM t;
CREATE RULE vr_u AS ON UPDATE TO vr DO INSTEAD UPDATE t SET name = new.name WHERE t.id = old.id;
CREATE VIEW vr2 AS SELECT id, name, version FROM t;
CREATE RULE vr_u AS ON UPDATE TO vr2 DO INSTEAD UPDATE t SET name = new.name WHERE t.id = old.id AND t.version = old.version;
-- what all rows are, to see whether a statement wrote one
CREATE FUNCTION content() RETURNS text LANGUAGE sql AS
    'SELECT string_agg(x::text, $$ $$ ORDER BY x::text) FROM (SELECT t::text FROM t UNION ALL SELECT par::text FROM par UNION ALL SELECT pt::text FROM pt) u (x)';
CREATE FUNCTION verdict(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before text := content();
BEGIN
    EXECUTE statement;
    RAISE EXCEPTION USING ERRCODE = 'ZZ999', MESSAGE = CASE WHEN content() = before THEN 'norow' ELSE 'sighted' END;
EXCEPTION
    WHEN SQLSTATE 'IL011' THEN RETURN 'blind';
    WHEN SQLSTATE 'ZZ999' THEN RETURN sqlerrm;
    WHEN OTHERS THEN RETURN sqlerrm;
END $$;
CREATE TABLE shape (number int, expected text, statement text);
INSERT INTO shape VALUES
    (1, 'blind', $q$update t set name='a' where id=1$q$),
    (2, 'blind', $q$update t set name='a', version=version+1 where id in (1)$q$),
    (3, 'sighted', $q$update t set name='a', version=version+1 where id=1 and version=1$q$),
    (4, 'sighted', $q$update t set name='a', version=2 where id=1 and version=1$q$),
    (5, 'sighted', $q$update t set name='a' where version=1 and t.id=1 returning *$q$),
    (6, 'sighted', $q$update t set name='a' where (id, version) = (1, 1)$q$),
    (7, 'sighted', $q$update t set name='a' where (id, version) in ((1,1),(2,1))$q$),
    (8, 'sighted', $q$update t set name='a' where (id, version) in (select id, version from s)$q$),
    (9, 'sighted', $q$update t set name='a' where (id=1 and version=1) or (id=2 and version=1)$q$),
    (10, 'blind', $q$update t set name='a' where id=1 and (version=1 or name='zz' or true)$q$),
    (11, 'blind', $q$update t set name='a' where id=1 and version=version$q$),
    (12, 'blind', $q$update t set name='a' where id=1 and version is not null$q$),
    (13, 'blind', $q$update t set name='a' where id=1 and version >= 1$q$),
    (14, 'sighted', $q$update t set name='a' where id=1 and version <= 1$q$),
    (15, 'sighted', $q$update t set name='a' where id=1 and 2 > version$q$),
    (16, 'blind', $q$update t set name='a' where id=1 and not version = 5$q$),
    (17, 'sighted', $q$update t set name='a' where id=1 and version is not distinct from 1$q$),
    (18, 'blind', $q$update t set name='a' where id=1 and version is distinct from 7$q$),
    (19, 'sighted', $q$update t set name='a' where id=1 and version = any(array[1])$q$),
    (20, 'blind', $q$update t set name='a' where id=1 and version = any('{1,2}'::bigint[])$q$),
    (21, 'blind', $q$update t set name='a' where id in (1,2) and version in (1,2)$q$),
    (22, 'sighted', $q$update t set name='a' where id=1 and version::text = '1'$q$),
    (23, 'sighted', $q$update t set name='a' where id=1 and coalesce(version,0) = 1$q$),
    (24, 'sighted', $q$update t set name='a' where id=1 and my_eq(version, 1)$q$),
    (25, 'sighted', $q$update t set name='a' where id=1 and interlock.any_version(version)$q$),
    (26, 'blind', $q$update t set name='a' where id=1 and version = (select max(version) from t x where x.id=1)$q$),
    (27, 'sighted', $q$update t set name='a' where id=1 and xmin = (select '1'::xid) or id=1 and version=1$q$),
    (28, 'sighted', $q$update t set name=s.name from s where t.id=s.id and t.version=s.version$q$),
    (29, 'blind', $q$update t set name=s.name from s where t.id=s.id$q$),
    (30, 'sighted', $q$update t set name=u.n from (values (1,1,'x'),(2,1,'y')) u(i,v,n) where t.id=u.i and t.version=u.v$q$),
    (31, 'sighted', $q$update t set name='q' from unnest(array[1,2], array[1,1]) u(i,v) where t.id=u.i and t.version=u.v$q$),
    (32, 'blind', $q$update t set name='q' from t o where o.id=t.id and o.id=1 and o.version=1$q$),
    (33, 'blind', $q$update t set name='q' from t o where o.id=t.id and o.id=1 and t.version=o.version and o.version=1$q$),
    (34, 'blind', $q$update t set name='q' where id in (select id from t x where x.id=1 and x.version=1)$q$),
    (35, 'blind', $q$with c as (select id, version from t where id=1 and version=1 for update) update t set name='q' from c where t.id=c.id and t.version=c.version$q$),
    (36, 'sighted', $q$update t set name='q' where exists (select from unnest(array[1], array[1]) u(i,v) where u.i=t.id and u.v=t.version)$q$),
    (37, 'blind', $q$with u as (update t set name='w' where id=1 returning *) select count(*) from u$q$),
    (38, 'sighted', $q$with u as (update t set name='w' where id=1 and version=1 returning *) select count(*) from u$q$),
    (39, 'sighted', $q$with d as (select 1 as i, 1 as v) update t set name='w' from d where t.id=d.i and t.version=d.v$q$),
    (40, 'blind', $q$delete from t where id=1$q$),
    (41, 'sighted', $q$delete from t where id=1 and version=1$q$),
    (42, 'sighted', $q$delete from t using s where t.id=s.id and t.version=s.version$q$),
    (43, 'blind', $q$update v set vname='a' where vid=1$q$),
    (44, 'sighted', $q$update v set vname='a' where vid=1 and ver=1$q$),
    (45, 'blind', $q$update vnover set name='a' where id=1$q$),
    (46, 'sighted', $q$update vb set name='a' where id=1 and version=1$q$),
    (47, 'blind', $q$update vb set name='a' where id=1$q$),
    (48, 'blind', $q$update vi set name='a' where id=1 and version=1$q$),
    (49, 'blind', $q$update vr set name='a' where id=1 and version=1$q$),
    (50, 'blind', $q$update vr2 set name='a' where id=1 and version=1$q$),
    (51, 'blind', $q$insert into t values (1,'a') on conflict (id) do update set name=excluded.name$q$),
    (52, 'sighted', $q$insert into t values (1,'a') on conflict (id) do update set name=excluded.name where t.version=1$q$),
    (53, 'sighted', $q$insert into t values (1,'a',1) on conflict (id) do update set name=excluded.name where t.version=excluded.version$q$),
    (54, 'blind', $q$merge into t using s on t.id=s.id when matched then update set name=s.name when not matched then do nothing$q$),
    (55, 'sighted', $q$merge into t using s on t.id=s.id and t.version=s.version when matched then update set name=s.name$q$),
    (56, 'sighted', $q$merge into t using s on t.id=s.id when matched and t.version=s.version then update set name=s.name when matched then do nothing$q$),
    (57, 'sighted', $q$merge into t using s on t.id=s.id when matched and t.version=s.version then update set name=s.name when matched then delete$q$),
    (58, 'blind', $q$merge into t using s on t.id=s.id when matched and t.version=s.version+1 then delete when matched and t.version=s.version then update set name=s.name when matched then update set n=1$q$),
    (59, 'blind', $q$update par set a=1$q$),
    (60, 'sighted', $q$update par set a=1 where version=1$q$),
    (61, 'blind', $q$update only par set a=1 where id=1$q$),
    (62, 'blind', $q$update chi set a=1$q$),
    (63, 'sighted', $q$update chi set a=1 where version=1$q$),
    (64, 'blind', $q$update pt set a=1 where id=11$q$),
    (65, 'sighted', $q$update pt set a=1 where id=11 and version=1$q$),
    (66, 'blind', $q$update pt2 set a=1$q$),
    (67, 'sighted', $q$update pt2 set a=1 where version=1$q$),
    (68, 'sighted', $q$update pt set id=12 where id=1 and version=1$q$),
    (69, 'blind', $q$update pt set id=12 where id=1$q$),
    (70, 'blind', $q$insert into pt values (1,1,5) on conflict (id) do update set a=5$q$),
    (71, 'sighted', $q$insert into pt values (1,1,5) on conflict (id) do update set a=5 where pt.version=1$q$),
    (72, 'blind', $q$merge into pt using s on pt.id=s.id when matched then update set a=9$q$),
    (73, 'sighted', $q$merge into pt using s on pt.id=s.id and pt.version=s.version when matched then update set a=9$q$),
    (74, 'blind', $q$select f_sql()$q$),
    (75, 'blind', $q$select f_pl()$q$),
    (76, 'sighted', $q$select f_pl2()$q$),
    (77, 'blind', $q$select f_def()$q$),
    (78, 'norow', $q$update t set name='a' where id=-1$q$),
    (79, 'sighted', $q$update t set name='a' where id=1 and t.xmin = (select x.xmin from s x limit 1) or version = 1$q$),
    (80, 'norow', $q$update t set name='a' where id=1 and t.xmin = 3$q$),
    (81, 'norow', $q$update t set name='a' where id=1 and version is null$q$),
    (82, 'sighted', $q$update t set name='a' where t = row(1, 'one', 1, null)::t$q$),
    (83, 'blind', $q$update t set name='a' where id=1 and my_eq(id, 1)$q$),
    (84, 'blind', $q$update t set name='a' where id=1 and exists (select max(s.version) from s where s.version = t.version)$q$),
    (85, 'sighted', $q$update t set name='a' where id=1 and exists (select from s join s s2 on s2.id = s.id and s2.version = t.version)$q$),
    (86, 'blind', $q$update t set name='a' where id=1 and exists (select from s left join s s2 on s2.version = t.version)$q$),
    (87, 'blind', $q$update t set name='a' where id=1 and not exists (select from s where s.version = t.version and s.id = 9)$q$),
    (88, 'blind', $q$update t set name='a' where id=1 and version <> 7$q$),
    (89, 'blind', $q$update t set name='a' where id=1 and (version between 1 and 1) is not null$q$),
    (90, 'sighted', $q$update t set name='a' where id=1 and version between 1 and 1$q$),
    (91, 'sighted', $q$update t set name=(select max(name) from t) where id=1 and version=1$q$),
    (92, 'blind', $q$update pt set a=1 from pt1 o where o.id = pt.id and o.version = pt.version$q$),
    (93, 'sighted', $q$update pt set a=1 from s o where o.id = pt.id and o.version = pt.version$q$),
    (94, 'blind', $q$with a as (update t set name='w' where id=1 and version=1) update t set name='w' where id=2$q$),
    (95, 'blind', $q$with a as (update t set name='w' where id=1) update t set name='w' where id=2 and version=1$q$),
    (96, 'blind', $q$with a as (delete from t where id=1) update s set name='w' where id=2$q$),
    (97, 'blind', $q$update t set name='a' where id=1 and name like 'o%'$q$),
    (98, 'sighted', $q$update t set name='a' where id=1 and (version, 0) = (1, 0)$q$),
    (99, 'blind', $q$update t set name='a' where id=1 and (version, 0) < (2, 0)$q$),
    (100, 'blind', $q$merge into t using s on t.id=s.id when matched and t.version=s.version+1 then update set name=s.name when matched then delete$q$);
CREATE TABLE result AS SELECT number, expected, verdict(statement), statement FROM shape ORDER BY number;
-- those that the rule decides otherwise
SELECT * FROM result WHERE verdict <> expected ORDER BY number;
SELECT number, verdict, statement FROM result ORDER BY number;
-- each as a prepared statement with a generic plan
SET plan_cache_mode = force_generic_plan;
DO $$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT * FROM result WHERE statement !~ '^select' LOOP
        EXECUTE format('PREPARE p%s AS %s', r.number, r.statement);
        ASSERT verdict('EXECUTE p' || r.number) = r.verdict, r.statement;
        ASSERT verdict('EXECUTE p' || r.number) = r.verdict, r.statement;
    END LOOP;
END $$;
DEALLOCATE ALL;
RESET plan_cache_mode;
DROP VIEW v, vnover, vb, vi, vr, vr2;
DROP TABLE t, s, par, chi, pt, shape, result;
DROP FUNCTION f_sql, f_pl, f_pl2, f_def, my_eq, iot, content, verdict;
