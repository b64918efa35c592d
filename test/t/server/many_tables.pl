# A session that works on more tables, and with more statements, than it keeps things for: results stay right, and memory
# stays bounded.
# only with --long

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $kept = 8192;                # plans and tables, as in src/table/plan.cpp and src/table/relation.cpp
my $tables = $kept + 300;
my $hot = int($tables / 10);    # updates of the hot table in a pass
my $others = 100;               # plans that are not ours
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
# Under this isolation every update takes a plan.
$node->append_conf('postgresql.conf', qq(
shared_preload_libraries = 'pg_interlock'
log_statement = none
max_connections = 20
max_locks_per_transaction = 2048
interlock.sweeper = off
fsync = off
synchronous_commit = off
autovacuum = off
default_transaction_isolation = 'repeatable read'
));
$node->start;

sub ask { return $node->safe_psql('postgres', $_[0]); }

ask(qq(
    CREATE EXTENSION pg_interlock;
    CREATE SCHEMA many;
    CREATE PROCEDURE make_tables() LANGUAGE plpgsql AS \$\$
    BEGIN
        FOR t IN 1 .. $tables LOOP
            EXECUTE format('CREATE TABLE many.t%s (id int PRIMARY KEY, a int, version bigint NOT NULL DEFAULT 1)', t);
            EXECUTE format('INSERT INTO many.t%s VALUES (1, 0)', t);
            PERFORM interlock.enable_versioning(format('many.t%s', t)::regclass);
            IF t % 100 = 0 THEN
                COMMIT;
            END IF;
        END LOOP;
    END \$\$;
    CALL make_tables();

    -- Every table once, and the hot one in between
    CREATE TABLE hot (id int PRIMARY KEY, a int, version bigint NOT NULL DEFAULT 1);
    INSERT INTO hot VALUES (1, 0);
    SELECT interlock.enable_versioning('hot');
    CREATE PROCEDURE pass(expected bigint, commits boolean) LANGUAGE plpgsql AS \$\$
    BEGIN
        FOR t IN 1 .. $tables LOOP
            IF interlock.versioned_update(format('many.t%s', t)::regclass, 1, expected, jsonb_build_object('a', t)) <> expected + 1 THEN
                RAISE 'table % has another version', t;
            END IF;
            IF t % 10 = 0 THEN
                PERFORM interlock.versioned_update('hot', 1, version, '{"a": 1}') FROM hot;
            END IF;
            IF commits THEN
                COMMIT;
            END IF;
        END LOOP;
    END \$\$;

    -- Rows that can be updated with many sets of columns, each of which takes a plan
    CREATE TABLE wide (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 1);
    DO \$\$
    BEGIN
        FOR i IN 0 .. 13 LOOP
            EXECUTE format('ALTER TABLE wide ADD COLUMN c%s int', i);
        END LOOP;
    END \$\$;
    INSERT INTO wide (id) SELECT generate_series(0, 99);
    SELECT interlock.enable_versioning('wide');
    CREATE PROCEDURE subsets(commits boolean) LANGUAGE plpgsql AS \$\$
    BEGIN
        FOR s IN 1 .. $tables LOOP
            PERFORM interlock.versioned_update('wide', id, version,
                (SELECT jsonb_object_agg('c' || b, s) FROM generate_series(0, 13) b WHERE (s >> b) & 1 = 1)) FROM wide WHERE id = s % 100;
            IF commits THEN
                COMMIT;
            END IF;
        END LOOP;
    END \$\$;

    CREATE VIEW kept AS
        SELECT count(*) FILTER (WHERE name = 'interlock relation') AS tables,
               count(*) FILTER (WHERE name = 'CachedPlanSource') AS plans,
               count(*) FILTER (WHERE name = 'CachedPlanSource' AND ident LIKE 'UPDATE ONLY public.hot AS t%') AS hot,
               count(*) FILTER (WHERE name = 'CachedPlanSource' AND ident LIKE 'UPDATE ONLY many.t1 AS t%') AS first
        FROM pg_backend_memory_contexts));

# within(NAME, LINE, TABLES, PLANS): the numbers that a session has kept.
sub within {
    my ($name, $line, $most_tables, $most_plans) = @_;
    my ($known, $plans) = split /\|/, $line;
    cmp_ok($known, '<=', $most_tables, "$name: what is known of $known tables is kept");
    cmp_ok($plans, '<=', $most_plans + $others, "$name: $plans plans are kept");
    return;
}

# --- A transaction for each table --------------------------------------------------------------------

my @lines = split /\n/, ask('CALL pass(1, true); TABLE kept; CALL pass(2, true); TABLE kept');
within('first pass', $lines[0], $kept, $kept);
within('second pass', $lines[1], $kept, $kept);
cmp_ok((split /\|/, $lines[0])[0], '>', $kept / 2, 'as many tables as there is room for');
like($lines[1], qr/\|1\|0$/, 'what is used all the time stays, what has rested longest goes');

# Nothing else analyzes here, and without statistics the planner expects few tables.
ask('ANALYZE pg_class, pg_trigger, pg_proc, pg_depend, pg_attribute, pg_attrdef, pg_constraint');

# Half of the tables find a line of their own in the view contention.
is(ask(q(SELECT count(*) FILTER (WHERE kind = 'versioning'), count(*) FILTER (WHERE kind = 'other'), sum(calls) FROM interlock.contention)),
    '4096|1|' . 2 * ($tables + $hot), 'each call is counted, and no table is too many for the view');
is(ask(q(BEGIN; LOCK TABLE many.t1, many.t9 IN ACCESS EXCLUSIVE MODE; SELECT count(*) FROM interlock.advise() WHERE finding ~ 'max_contention_lines')), 1,
    'advise says that there are more');

# --- One transaction ---------------------------------------------------------------------------------

# It has locks on its tables, and keeps what it knows of them; the next ones drop what is too much.
@lines = split /\n/, ask('BEGIN; CALL pass(3, false); TABLE kept; COMMIT; CALL subsets(true); TABLE kept');
within('one transaction', $lines[0], $tables + 10, $kept);
within('those after it', $lines[1], $kept, $kept);
is(ask('BEGIN; CALL pass(4, false); COMMIT; SELECT interlock.versioned_update($$many.t1$$, 1, 5, $${"a": 0}$$)'), 6,
    'after it an update');

# --- Many statements on one table --------------------------------------------------------------------

my $before = ask('SELECT sum(version) FROM wide');
within('sets of columns', ask('CALL subsets(true); TABLE kept'), 10, $kept);
within('sets of columns in one transaction', ask('BEGIN; CALL subsets(false); TABLE kept; COMMIT'), 10, $kept);
is(ask('SELECT sum(version) FROM wide'), $before + 2 * $tables, 'each of them has updated');
is(ask('SELECT max(c13) FROM wide'), $tables, 'what it was to');

# --- Plans that find no place ------------------------------------------------------------------------

ask(q(CREATE TABLE recorded (id int PRIMARY KEY, a int); SELECT interlock.enable_history('recorded')));
is(ask(q(BEGIN; CALL subsets(false);
         INSERT INTO recorded VALUES (1, 1); UPDATE recorded SET a = 2;
         SELECT row_data ->> 'a' FROM interlock.row_history('recorded', 1);
         COMMIT)), "1\n2", 'plans by index are used once');

# --- A plan that runs meanwhile ----------------------------------------------------------------------

ask(q(
    CREATE FUNCTION work() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        CALL subsets(false);
        NEW.a := 7;
        RETURN NEW;
    END $$;
    CREATE TRIGGER work BEFORE UPDATE ON hot FOR EACH ROW EXECUTE FUNCTION work()));
is(ask(q(SELECT interlock.versioned_update('hot', 1, version, '{"a": 1}') - version, a FROM hot;
         SELECT a FROM hot)), "1|1\n7", 'an update whose trigger makes more plans than are kept');

is(ask('SELECT count(*), min(version), max(version) FROM hot'), '1|' . join('|', (4 * $hot + 2) x 2), 'no update of the hot row is lost');
$node->stop;
done_testing();
