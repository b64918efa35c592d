-- TRN-3: the view transitions, from which a page draws its buttons.
BEGIN;
SELECT plan(15);

CREATE TABLE work_order (id int PRIMARY KEY, status text NOT NULL, "The Kind" smallint);
CREATE FUNCTION may_claim(old work_order, new work_order) RETURNS boolean LANGUAGE sql AS 'SELECT true';
SELECT is_empty('SELECT * FROM interlock.transitions', 'nothing is declared');
SELECT interlock.define_transitions('work_order', 'status', '{"open": ["claimed", "cancelled", "claimed"], "claimed": ["closed"]}', '{open}',
    guards => '{"open": {"claimed": "may_claim(work_order, work_order)"}}');
SELECT results_eq('SELECT rel::text, state_column::text COLLATE "default", from_state, to_state, guard::text, is_initial FROM interlock.transitions ORDER BY 3, 4',
    $$VALUES ('work_order', 'status', 'cancelled', NULL, NULL, false), ('work_order', 'status', 'claimed', 'closed', NULL, false), ('work_order', 'status', 'closed', NULL, NULL, false),
             ('work_order', 'status', 'open', 'cancelled', NULL, true), ('work_order', 'status', 'open', 'claimed', 'may_claim(work_order,work_order)', true)$$, 'a line each');
SELECT interlock.define_transitions('work_order', 'The Kind', '{"1": [2], "2": ["02"]}');
SELECT results_eq('SELECT from_state, to_state, is_initial FROM interlock.transitions WHERE state_column = ''The Kind'' ORDER BY 1, 2',
    $$VALUES ('1', '2', true), ('2', '2', true)$$, 'without initial states all are');
SELECT interlock.define_transitions('work_order', 'The Kind', '{}', '{7}');
SELECT results_eq('SELECT from_state, to_state, is_initial FROM interlock.transitions WHERE state_column = ''The Kind''', $$VALUES ('7', NULL, true)$$, 'an initial state that is final');
SELECT interlock.define_transitions('work_order', 'The Kind', '{"8": []}', '{}');
SELECT results_eq('SELECT from_state, to_state, is_initial FROM interlock.transitions WHERE state_column = ''The Kind''', $$VALUES ('8', NULL, false)$$, 'no initial state');
SELECT interlock.drop_transitions('work_order', 'The Kind');

-- the names of the day
ALTER FUNCTION may_claim(work_order, work_order) RENAME TO can_claim;
ALTER TABLE work_order RENAME TO job;
SELECT results_eq('SELECT DISTINCT rel::text, guard::text FROM interlock.transitions WHERE guard IS NOT NULL', $$VALUES ('job', 'can_claim(job,job)')$$, 'renamed');
SELECT results_eq('SELECT to_state FROM interlock.transitions WHERE rel = ''job''::regclass AND state_column = ''status'' AND from_state = (''open'') AND to_state IS NOT NULL ORDER BY 1',
    $$VALUES ('cancelled'), ('claimed')$$, 'the buttons of a row');

-- partitions are their parent
CREATE TABLE part (id int, status text) PARTITION BY LIST (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
SELECT interlock.define_transitions('part', 'status', '{"a": ["b"]}');
SELECT results_eq('SELECT DISTINCT rel::text FROM interlock.transitions WHERE rel::text LIKE ''part%''', $$VALUES ('part')$$, 'partitions');

-- who sees it
CREATE ROLE interlock_anna;
CREATE ROLE interlock_bert;
SET ROLE interlock_anna;
SELECT is_empty('SELECT * FROM interlock.transitions', 'not without a privilege');
RESET ROLE;
GRANT INSERT (id) ON job TO interlock_anna;
GRANT DELETE ON part TO interlock_bert;
SET ROLE interlock_anna;
SELECT results_eq('SELECT DISTINCT rel::text FROM interlock.transitions', $$VALUES ('job')$$, 'with one on a column');
SET ROLE interlock_bert;
SELECT results_eq('SELECT DISTINCT rel::text FROM interlock.transitions', $$VALUES ('part')$$, 'or the table');
RESET ROLE;

-- triggers of others, columns that are gone: passed over (SEC-1)
CREATE TABLE forged (id int PRIMARY KEY, status text, spot point);
CREATE TRIGGER a BEFORE UPDATE ON forged FOR EACH ROW EXECUTE FUNCTION interlock_internal.transition_trigger();
CREATE TRIGGER b BEFORE UPDATE ON forged FOR EACH ROW EXECUTE FUNCTION interlock_internal.transition_trigger('status', '{', '', 'allow');
CREATE TRIGGER c BEFORE UPDATE ON forged FOR EACH ROW EXECUTE FUNCTION interlock_internal.transition_trigger('nowhere', '{"a": ["b"]}', '', 'allow');
CREATE TRIGGER d BEFORE UPDATE ON forged FOR EACH ROW EXECUTE FUNCTION interlock_internal.transition_trigger('spot', '{"a": ["b"]}', '', 'allow');
CREATE TRIGGER e BEFORE UPDATE ON forged FOR EACH ROW WHEN (false) EXECUTE FUNCTION interlock_internal.transition_trigger('status', '{"a": ["b"]}', '', 'allow');
CREATE TRIGGER f BEFORE UPDATE ON forged FOR EACH ROW EXECUTE FUNCTION interlock_internal.transition_trigger('status', '{"a": ["b"]}', '', 'allow', '{"a": {"b": 0}}');
CREATE TRIGGER g BEFORE UPDATE ON forged FOR EACH ROW EXECUTE FUNCTION interlock_internal.transition_trigger('ctid', '{"a": ["b"]}', '', 'allow');
SELECT is_empty('SELECT * FROM interlock.transitions WHERE rel = ''forged''::regclass', 'triggers of others');
ALTER TABLE part RENAME status TO state;
SELECT is_empty('SELECT * FROM interlock.transitions WHERE rel = ''part''::regclass', 'a column that is gone');
SELECT interlock.drop_transitions('part', 'status');
-- of a large declaration, in one go
CREATE TABLE large (id int PRIMARY KEY, n int);
SELECT interlock.define_transitions('large', 'n', (SELECT jsonb_object_agg(n, '[1]'::jsonb) FROM generate_series(1, 50000) n), (SELECT array_agg(n::text) FROM generate_series(1, 50000, 2) n));
SELECT is((SELECT count(*) FROM interlock.transitions WHERE rel = 'large'::regclass AND is_initial), 25000::bigint, 'many states');
DROP TABLE job CASCADE;
SELECT is_empty('SELECT * FROM interlock.transitions WHERE rel <> ''large''::regclass', 'and gone with the table');

SELECT * FROM finish();
ROLLBACK;
