-- CFG-4, CFG-5: the view guards shows all that is configured, whether it holds, and why not.
BEGIN;
SELECT * FROM no_plan();
SET client_min_messages = error;
SELECT is_empty('SELECT * FROM interlock.guards', 'nothing is configured');

CREATE TABLE product (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 1, status text, price numeric, stock int);
SELECT interlock.configure('product', '{"versioning": {}, "transitions": {"status": {"transitions": {"a": ["b"]}, "initial": ["a"]}}, "marker": {"notify": "on"}, "history": {},
    "ownership": {"columns": {"price": {"writer": "w"}}}, "require_lease": {"product:{id}": {}}}');
CREATE TABLE part (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10);
SELECT interlock.enable_versioning('part'), interlock.enable_history('part');

SELECT results_eq($$SELECT rel::text, mechanism, enforced, findings FROM interlock.guards ORDER BY 1, 2$$,
    $$VALUES ('part', 'history', true, '{}'::text[]), ('part', 'versioning', true, '{}'), ('part_1', 'history', true, '{}'), ('part_1', 'versioning', true, '{}'),
             ('product', 'history', true, '{}'), ('product', 'marker', true, '{}'), ('product', 'ownership', true, '{}'), ('product', 'require_lease', true, '{}'),
             ('product', 'transitions', true, '{}'), ('product', 'versioning', true, '{}')$$, 'every table and partition');
SELECT is_empty($$SELECT rel, interlock.configuration(rel), jsonb_object_agg(mechanism, settings) FROM interlock.guards GROUP BY rel HAVING jsonb_object_agg(mechanism, settings) <> interlock.configuration(rel)$$,
    'the settings are those of configuration');

-- What is off, by the mechanism that it is of.
CREATE FUNCTION broken(rel regclass) RETURNS SETOF text LANGUAGE sql AS
    $$SELECT format('%s %s %s', mechanism, CASE WHEN enforced THEN 'holds' ELSE 'fails' END, array_to_string(findings, '; ')) FROM interlock.guards g WHERE g.rel = $1 AND (NOT enforced OR findings <> '{}') ORDER BY 1$$;
ALTER TABLE product DISABLE TRIGGER zzz_interlock_version;
ALTER TABLE product DISABLE TRIGGER zzz_interlock_initial_status;
ALTER TABLE product ENABLE REPLICA TRIGGER zzz_interlock_marker;
ALTER TABLE product DISABLE TRIGGER zzz_interlock_columns;
ALTER TABLE product DISABLE TRIGGER zzz_interlock_history_truncate;
SELECT set_eq($$SELECT broken('product')$$, ARRAY['history fails trigger "zzz_interlock_history_truncate" is disabled: TRUNCATE is not recorded',
    'marker fails trigger "zzz_interlock_marker" fires on a replica only: markers are not enforced',
    'ownership fails trigger "zzz_interlock_columns" is disabled: columns are written by anybody',
    'transitions fails trigger "zzz_interlock_initial_status" is disabled: states of new rows are not checked', 'versioning fails trigger "zzz_interlock_version" is disabled: updates do not move versions'], 'triggers that do not fire');
ALTER TABLE product ENABLE TRIGGER USER;
SELECT is_empty($$SELECT broken('product')$$, 'fire again');
ALTER TABLE product DISABLE TRIGGER zzz_interlock_marker_notify;
SELECT set_eq($$SELECT broken('product')$$, ARRAY['marker holds trigger "zzz_interlock_marker_notify" is disabled: nobody is notified of markers'], 'a finding that lets no write pass');
ALTER TABLE product ENABLE TRIGGER USER;
CREATE TABLE stocked (id int PRIMARY KEY, stock int NOT NULL);
SELECT interlock.enable_escrow('stocked', 'stock');
SELECT is_empty($$SELECT broken('stocked')$$, 'counters whose triggers fire always');
ALTER TABLE stocked ENABLE TRIGGER zzzz_interlock_escrow_stock;
ALTER TABLE stocked DISABLE TRIGGER zzz_interlock_truncate_stock;
SELECT set_eq($$SELECT broken('stocked')$$, ARRAY['escrow fails trigger "zzz_interlock_truncate_stock" is disabled: TRUNCATE leaves parts of the counters; '
    'trigger "zzzz_interlock_escrow_stock" does not fire in all sessions: writes pass by the counters, which cannot be adjusted'], 'and that do not');
SELECT set_eq($$SELECT advice FROM interlock.advise() WHERE rel = 'stocked'::regclass$$, ARRAY['ALTER TABLE stocked ENABLE ALWAYS TRIGGER zzzz_interlock_escrow_stock',
    'ALTER TABLE stocked ENABLE ALWAYS TRIGGER zzz_interlock_truncate_stock'], 'with what helps');
DROP TABLE stocked;

-- More settings than the view shows
CREATE TABLE long (id int PRIMARY KEY);
DO $$ BEGIN FOR i IN 1..5 LOOP
    EXECUTE format('CREATE TRIGGER x%s AFTER UPDATE ON long FOR EACH ROW EXECUTE FUNCTION interlock_internal.lease_trigger(%L, %s)', i, 'k' || i,
        (SELECT string_agg(quote_literal(repeat('x', 120) || n), ', ') FROM generate_series(1, 30000) n));
END LOOP; END $$;
SELECT results_eq($$SELECT (SELECT count(*) FROM jsonb_object_keys(settings -> 'k1')), findings FROM interlock_internal.list_guards() WHERE rel = 'long'::regclass$$,
    $$VALUES (1::bigint, ARRAY['trigger "x5" is not as interlock.require_lease creates it: writes are refused'])$$, 'what is too long is not shown');
SELECT ok(NOT interlock.configuration('long') -> 'require_lease' ? 'k5', 'nor returned');
DROP TABLE long;
SET LOCAL session_replication_role = replica;
SELECT is((SELECT count(*) FROM interlock.guards WHERE rel = 'product'::regclass AND NOT enforced), 6::bigint, 'in a session in which none fires');
RESET session_replication_role;
CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
CREATE TRIGGER zzz_late BEFORE UPDATE ON product FOR EACH ROW EXECUTE FUNCTION late();
SELECT set_eq($$SELECT broken('product')$$, (SELECT array_agg(m || ' fails trigger "zzz_late" fires after trigger "zzz_interlock_columns": writes are refused')
    FROM unnest('{marker,ownership,transitions,versioning}'::text[]) m), 'a trigger after all of them');
SELECT is((SELECT count(*) FROM interlock.advise() WHERE rel = 'product'::regclass), 1::bigint, 'which is one finding');
ALTER TRIGGER zzz_late ON product RENAME TO zzz_interlock_s;
SELECT set_eq($$SELECT broken('product')$$, (SELECT array_agg(m || ' fails trigger "zzz_interlock_s" fires after trigger "zzz_interlock_columns": writes are refused') FROM unnest('{marker,ownership}'::text[]) m), 'after one');
DROP TRIGGER zzz_interlock_s ON product;
ALTER TABLE product ALTER version DROP DEFAULT;
SELECT set_eq($$SELECT broken('product')$$, ARRAY['versioning holds column "version" has no default: a key that is used again meets old versions'], 'a default that is gone');
ALTER TABLE product RENAME version TO v2;
ALTER TABLE product DROP COLUMN price;
ALTER TABLE product RENAME status TO state;
ALTER TABLE product RENAME id TO number;
SELECT set_eq($$SELECT broken('product')$$, ARRAY['ownership fails owned column "price" is gone: writes are refused', 'require_lease fails lease column "id" is gone: writes are refused',
    'transitions fails state column "status" is gone: writes are refused', 'versioning fails version column "version" is gone or has another type'], 'columns that are gone');
SELECT is((SELECT settings FROM interlock.guards WHERE rel = 'product'::regclass AND mechanism = 'ownership'), '{"columns": {"price": {"writer": "w", "on_violation": "reject", "once_changed": false}}, "groups": []}', 'the settings are there');
ALTER TABLE part DISABLE TRIGGER zzz_interlock_version;
SELECT results_eq($$SELECT rel::text, enforced FROM interlock.guards WHERE mechanism = 'versioning' AND rel::text LIKE 'part%' ORDER BY 1$$, $$VALUES ('part', false), ('part_1', false)$$, 'with its partitions');
ALTER TABLE part ENABLE TRIGGER USER;
ALTER TABLE part_1 DISABLE TRIGGER USER;
SELECT results_eq($$SELECT rel::text, mechanism, enforced FROM interlock.guards WHERE rel::text LIKE 'part%' ORDER BY 1, 2$$,
    $$VALUES ('part', 'history', true), ('part', 'versioning', true), ('part_1', 'history', false), ('part_1', 'versioning', false)$$, 'of a partition alone');

-- What is missing: no settings.
CREATE TABLE parent (id int PRIMARY KEY, status text);
SELECT interlock.enable_versioning('parent'), interlock.define_transitions('parent', 'status', '{}');
CREATE TABLE heir () INHERITS (parent);
SELECT results_eq($$SELECT mechanism, settings, enforced, findings FROM interlock.guards WHERE rel = 'heir'::regclass ORDER BY 1$$,
    $$VALUES ('transitions', NULL::jsonb, false, ARRAY['the table inherits from one with transitions of column "status" and has none itself']),
             ('versioning', NULL, false, ARRAY['the table inherits from a versioned one and is not versioned itself'])$$, 'a table that inherits');
DROP TRIGGER zzz_interlock_version ON parent;
SELECT results_eq($$SELECT settings, enforced, findings FROM interlock.guards WHERE rel = 'parent'::regclass AND mechanism = 'versioning'$$,
    $$VALUES (NULL::jsonb, false, ARRAY['the version trigger is gone: updates do not move column "version"'])$$, 'a trigger that was dropped');

-- SEC-1: triggers of others
CREATE TABLE forged (id int PRIMARY KEY, status text);
DO $$
DECLARE f text; a text;
BEGIN
    FOREACH f IN ARRAY '{version,children,transition,initial_state,marker,marker_notify,lease,ownership,history,history_truncate}'::text[] LOOP
        FOREACH a IN ARRAY ARRAY['', $a$''$a$, $a$'id'$a$, $a$'id','maybe'$a$, $a$'status','{"a":','','allow'$a$, $a$'status','{"a": ["b"]}','','allow','{"a": {"b": 9}}'$a$, $a$'{','id'$a$,
            $a$'9223372036854775807','enforce','a','b','c','d','e'$a$, $a$'-1','enforce','a','b','c','d','e'$a$, $a$'300000000 microseconds','enforce','a','b','c','d','e'$a$, $a$'a','own:skip','b','c','own:reject'$a$, $a$'a','group','0'$a$,
            $a$'-5','99999999999999999999','','notify off','ignore markers', '1 entries per whole row','99999 ignored columns'$a$, $a$'-5','99999999999999999999','x','notify full','record markers', '1 entries per whole row','1 ignored columns','a','1 ignored writers','b','c'$a$,
            format('%L', repeat('x', 5000000)), format('%L,%L,%L', 'status', '{"a": ["' || repeat('b', 1200000) || '"]}', '')] LOOP
            BEGIN
                EXECUTE format('CREATE TRIGGER %s_%s AFTER TRUNCATE ON forged EXECUTE FUNCTION interlock_internal.%s_trigger(%s)', f, md5(a), f, a);
            EXCEPTION WHEN invalid_parameter_value THEN NULL;
            END;
        END LOOP;
    END LOOP;
END $$;
SELECT lives_ok('SELECT * FROM interlock.guards', 'SEC-1: any arguments');
SELECT lives_ok($$SELECT interlock.configuration('forged')$$, 'SEC-1: of the table');
SELECT bag_has($$SELECT mechanism, enforced, array_to_string(findings, e'\n') ~ '(?n)^trigger ".*" is not as interlock\.[a-z_]+ creates it: writes are refused$' FROM interlock.guards WHERE rel = 'forged'::regclass$$,
    $$VALUES ('versioning', false, true), ('transitions', false, true), ('marker', false, true), ('require_lease', false, true), ('ownership', false, true), ('history', false, true)$$, 'SEC-1: each is found');
SELECT is((SELECT count(*) FROM interlock.guards WHERE rel = 'product'::regclass), 6::bigint, 'SEC-1: and others are there');
CREATE DOMAIN state AS text CHECK (VALUE <> 'x');
CREATE TABLE in_domain (id int PRIMARY KEY, status state);
SELECT interlock.define_transitions('in_domain', 'status', '{"a": ["b"]}');
DROP DOMAIN state CASCADE;
SELECT is((SELECT findings FROM interlock.guards WHERE rel = 'in_domain'::regclass), ARRAY['state column "status" is gone: writes are refused'], 'a dropped domain');

-- who sees it
CREATE ROLE interlock_anna;
SET ROLE interlock_anna;
SELECT is_empty('SELECT * FROM interlock.guards', 'not without a privilege');
RESET ROLE;
GRANT UPDATE (status) ON heir TO interlock_anna;
GRANT TRIGGER ON product TO interlock_anna;
SET ROLE interlock_anna;
SELECT set_eq('SELECT rel::text FROM interlock.guards', ARRAY['heir', 'product'], 'with one, or on a column');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
