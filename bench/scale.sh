# scale.sh: how the cost grows with rows, leases, clients and tables, and what it takes in memory. To be sourced by
# script/bench, for script/bench --scale.

ROW_COUNTS="1000 10000 100000 1000000 10000000"
LEASE_COUNTS="1000 10000 100000 1000000"
CLIENT_COUNTS="1 2 4 8 16 32 64"
TABLE_COUNTS="1 10 100 1000"
CROWD=64
CALLS=10000 # of each session over many tables

measure_scale() {
    ROUNDS=3
    SECONDS_EACH=2
    if [ -n "$QUICK" ]; then
        ROUNDS=1 SECONDS_EACH=1 CROWD=16 CALLS=2000
        ROW_COUNTS="1000 100000" LEASE_COUNTS="1000 100000" CLIENT_COUNTS="1 8 16" TABLE_COUNTS="1 100" WAITER_COUNTS="10 100"
    fi
    add_about --argjson rounds "$ROUNDS" --argjson seconds "$SECONDS_EACH" '.settings += {rounds: $rounds, seconds: $seconds} | del(.settings.clients)'
    # Long leases would each be recorded durably, and short ones would end before the measurement.
    start_cluster "${SETTINGS[@]}" "max_connections = 100" "interlock.max_leases = $((${LEASE_COUNTS##* } + 65536))" \
        "interlock.lease_durable_after = '1h'" "interlock.sweeper = off"
    heading "pg_interlock on PostgreSQL $PG_VERSION, $(nproc) cores: medians of $ROUNDS rounds of $SECONDS_EACH s"
    warn_of_load
    psql -qX -v ON_ERROR_STOP=1 -c "CREATE EXTENSION pg_interlock"
    if wanted rows; then scale_rows; fi
    if wanted leases; then scale_leases; fi
    if wanted holds; then scale_holds; fi
    if wanted clients || wanted "hot row"; then set_up_crowds; fi
    if wanted clients; then scale_clients; fi
    if wanted "hot row"; then scale_hot; fi
    if wanted tables; then scale_tables; fi
    if wanted waiters; then scale_waiters; fi
}

# scale_row TABLE WHAT X VALUE UNIT: one figure.
scale_row() {
    jq -cn --arg table "$1" --arg what "$2" --argjson at "$3" --argjson value "$4" --arg unit "$5" \
        '{table: $table, what: $what, at: $at, value: $value, unit: $unit}' >>"$WORK/scale"
}

# scale_table TABLE HEADING OF: prints its figures, a line for what was done and a column for each number of OF.
scale_table() {
    local what cells
    heading "$2"
    jq -rs --arg table "$1" --arg of "$3" 'map(select(.table == $table)) | ([.[].at] | unique) as $columns
        | ([$of, ($columns[] | tostring)] | @tsv),
          (group_by([.what, .unit]) | sort_by(.[0].order)[] | . as $row | [.[0].what + ", " + .[0].unit, ($columns[] as $at | $row | map(select(.at == $at).value | tostring) | first // "")] | @tsv)' \
        <(jq -s '[to_entries[] | .value + {order: .key}][]' "$WORK/scale") |
        while IFS=$'\t' read -r what cells; do
            printf '  %-52s' "$what"
            # shellcheck disable=SC2086
            printf '%11s' $cells
            echo
        done
}

# scale_loads TABLE X CLIENTS UNIT WHAT LOAD [WHAT LOAD]...: runs them in turn and prints a line for each: us (of one call
# as one client sees it) or /s.
scale_loads() {
    local table=$1 at=$2 clients=$3 unit=$4 round i value pairs load loads=()
    shift 4
    pairs=("$@") SAMPLES=()
    for ((i = 1; i < $#; i += 2)); do loads+=("${pairs[i]}"); done
    for ((round = 0; round <= ROUNDS; round++)); do
        progress "$table: $at, $([ "$round" = 0 ] && echo warming up || echo "round $round of $ROUNDS")"
        take_samples "$clients" "$([ "$round" = 0 ] && echo 1 || echo "$SECONDS_EACH")" "${loads[@]}"
        [ "$round" != 0 ] || SAMPLES=()
    done
    end_progress
    for ((i = 0; i < $#; i += 2)); do
        load=${pairs[i + 1]}
        if [ -n "${UNAVAILABLE[$load]:-}" ]; then
            not_measured "$table" "${pairs[i]}" "${UNAVAILABLE[$load]}"
            continue
        fi
        # shellcheck disable=SC2086
        value=$(middle ${SAMPLES[$load]})
        scale_row "$table" "${pairs[i]}" "$at" "$(awk -v v="$value" -v unit="$unit" -v clients="$clients" \
            'BEGIN {if (unit == "us") printf "%.1f", 1e6 * clients / v; else printf "%.0f", v}')" "$unit"
    done
}

middle() { printf '%s\n' "$@" | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

# --- Rows ----------------------------------------------------------------------

# Beside the same by hand: a larger table is slower for everybody, as less of it is in the caches.
scale_rows() {
    local rows
    write row_call_update "\\set id random(1, :rows)" "SELECT version FROM big_versioned WHERE id = :id \\gset" \
        "SELECT interlock.versioned_update('big_versioned', :id, :version, '{\"a\": 1, \"b\": \"y\", \"c\": 2.5}');"
    write row_hand_update "\\set id random(1, :rows)" "SELECT version FROM big_plain WHERE id = :id \\gset" \
        "UPDATE big_plain SET a = 1, b = 'y', c = 2.5, version = version + 1 WHERE id = :id AND version = :version RETURNING version;"
    write row_call_lock "\\set id random(1, :rows)" "SELECT (interlock.lock_row('big_marked', :id, 'me')).locked;" \
        "SELECT interlock.save_row('big_marked', :id, 'me', '{\"b\": \"y\"}');"
    write row_hand_lock "\\set id random(1, :rows)" \
        "UPDATE big_plain SET lock_status = 1, lock_by = 'me', lock_time = now() WHERE id = :id AND lock_status = 0;" \
        "UPDATE big_plain SET b = 'y', lock_status = 0, lock_by = NULL, lock_time = NULL WHERE id = :id AND lock_by = 'me';"
    for rows in $ROW_COUNTS; do
        progress "filling tables of $rows rows"
        fill_tables "$rows"
        sed -i "s/random(1, [^)]*)/random(1, $rows)/" "$LOADS"/row_*.load
        scale_loads rows "$rows" 1 us "versioned_update, three columns" row_call_update "the same by hand" row_hand_update \
            "lock_row + save_row" row_call_lock "two UPDATEs by hand" row_hand_lock
    done
    psql -qX -c "DROP TABLE big_plain, big_versioned, big_marked"
    scale_table rows "Rows: one client, time of a call" "rows in the table"
}

fill_tables() {
    psql -qX -v ON_ERROR_STOP=1 >/dev/null 2>"$WORK/fill.log" <<SQL || { show "$WORK/fill.log" && die "could not fill the tables"; }
SET client_min_messages = warning;
DROP TABLE IF EXISTS big_plain, big_versioned, big_marked;
CREATE TABLE big_plain (id int PRIMARY KEY, a int, b text, c numeric, version bigint NOT NULL DEFAULT 1,
    lock_status int NOT NULL DEFAULT 0, lock_by text, lock_time timestamptz, lock_until timestamptz) WITH (fillfactor = 50);
INSERT INTO big_plain (id, a, b, c) SELECT g, 0, 'x', 0 FROM generate_series(1, $1) g;
CREATE TABLE big_versioned (LIKE big_plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO big_versioned SELECT * FROM big_plain;
SELECT interlock.enable_versioning('big_versioned');
CREATE TABLE big_marked (LIKE big_plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO big_marked SELECT * FROM big_plain;
SELECT interlock.enable_marker('big_marked');
VACUUM ANALYZE big_plain, big_versioned, big_marked;
CHECKPOINT;
SQL
}

# --- Leases --------------------------------------------------------------------

scale_leases() {
    local leases before=0
    write lease_among "SELECT (interlock.acquire_lease('mine:' || :id::text, '30 s')).token \\gset" \
        "SELECT interlock.release_lease('mine:' || :id::text, :token);"
    write lease_look "SELECT blocks_key FROM interlock.lease_of('other:' || :id::text || '/part');"
    for leases in $LEASE_COUNTS; do
        progress "taking $leases leases"
        psql -qXAt -v ON_ERROR_STOP=1 \
            -c "SELECT 1 / (count(*) = $leases - $before)::int FROM (SELECT (interlock.acquire_lease('other:' || g, '50 min')).outcome
                FROM generate_series($before + 1, $leases) g) taken WHERE outcome = 'acquired'" >/dev/null
        before=$leases
        scale_loads leases "$leases" 1 us "acquire_lease + release_lease" lease_among "lease_of" lease_look
    done
    scale_table leases "Leases: one client, time of a pair of calls" "leases there"
    scale_row "lease memory" "shared memory for each of interlock.max_leases" "$(psql -qXAt -c "SHOW interlock.max_leases")" \
        "$(psql -qXAt -c "SELECT round(sum(allocated_size) / current_setting('interlock.max_leases')::int) FROM pg_shmem_allocations WHERE name ~ 'lease'")" bytes
    scale_table "lease memory" "Leases: memory" "interlock.max_leases"
    psql -qXAt -c "SELECT count(interlock.release_lease(key, token)) FROM interlock.leases" >/dev/null
}

# --- Clients -------------------------------------------------------------------

set_up_crowds() {
    psql -qX -v ON_ERROR_STOP=1 >/dev/null 2>&1 <<'SQL'
CREATE TABLE plain (id int PRIMARY KEY, a int, b text, c numeric, version bigint NOT NULL DEFAULT 1,
    lock_status int NOT NULL DEFAULT 0, lock_by text, lock_time timestamptz, lock_until timestamptz) WITH (fillfactor = 50);
INSERT INTO plain (id, a, b, c) SELECT g, 0, 'x', 0 FROM generate_series(1, 100000) g;
CREATE TABLE versioned (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO versioned SELECT * FROM plain;
SELECT interlock.enable_versioning('versioned');
CREATE TABLE marked (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO marked SELECT * FROM plain;
SELECT interlock.enable_marker('marked');
CREATE FUNCTION add_one(row_now jsonb, args jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE
    RETURN jsonb_build_object('a', (row_now->>'a')::int + 1);
SQL
}

# Beyond the cores the rate must stay where it is.
scale_clients() {
    local clients key='\set key :client_id * 1000000 + :id'
    write_version_loads
    write_marker_loads
    write lease "$key" "SELECT (interlock.acquire_lease(:key, '30 s')).token \\gset" "SELECT interlock.release_lease(:key, :token);"
    write_key_loads
    for clients in $CLIENT_COUNTS; do
        scale_loads clients "$clients" "$clients" /s "versioned_update, three columns" call_update "the same by hand" hand_update \
            "lock_row + save_row" call_marked_lock "two UPDATEs by hand" hand_lock \
            "acquire_lease + release_lease" lease "lock_key" key_lock "pg_try_advisory_xact_lock of a text" text_lock
    done
    scale_table clients "Clients: all of them together, each with rows and keys of its own choice" clients
}

# Everybody wants the same. What counts is what got done: a refused update is no update.
scale_hot() {
    local clients
    write hot_retry "SELECT (interlock.update_with_retry('versioned', 1, 'add_one(jsonb, jsonb)', max_retries => 1000)).outcome;"
    write hot_call "SELECT version FROM versioned WHERE id = 2 \\gset" \
        "SELECT (interlock.try_versioned_update('versioned', 2, :version, '{\"a\": 1}')).outcome;"
    write hot_hand "SELECT version FROM plain WHERE id = 2 \\gset" \
        "UPDATE plain SET a = 1, version = version + 1 WHERE id = 2 AND version = :version;"
    write hot_increment "UPDATE plain SET a = a + 1 WHERE id = 1;"
    write hot_key "SELECT interlock.lock_key('account:1');"
    write hot_advisory "SELECT pg_advisory_xact_lock(1);"
    write hot_lease "SELECT (interlock.acquire_lease('hot', '30 s', wait => '30 s')).token \\gset" "SELECT interlock.release_lease('hot', :token);"
    for clients in 1 "$CROWD"; do
        scale_loads "hot row" "$clients" "$clients" /s "update_with_retry of one row" hot_retry "UPDATE a = a + 1 of one row, by hand" hot_increment
        scale_updates "$clients" versioned hot_call "read + versioned_update of one row"
        scale_updates "$clients" plain hot_hand "read + UPDATE ... AND version, by hand"
        scale_loads "hot row" "$clients" "$clients" /s "lock_key of one key" hot_key "pg_advisory_xact_lock of one key" hot_advisory \
            "acquire_lease + release_lease of one key, waiting" hot_lease
    done
    scale_table "hot row" "Everybody wants the same one: done by all together" clients
}

# scale_updates CLIENTS TABLE LOAD WHAT: counts by the version of row 2, which only moves when an update is done.
scale_updates() {
    local query="SELECT version FROM $2 WHERE id = 2" from tries
    progress "hot row, $1 clients"
    from=$(psql -qXAt -c "$query")
    SAMPLES=()
    take_sample "$1" "$3" "$SECONDS_EACH"
    end_progress
    if [ -n "${UNAVAILABLE[$3]:-}" ]; then
        not_measured "hot row" "$4" "${UNAVAILABLE[$3]}"
        return
    fi
    tries=${SAMPLES[$3]%%.*}
    scale_row "hot row" "$4" "$1" "$((($(psql -qXAt -c "$query") - from) / SECONDS_EACH))" /s
    scale_row "hot row" "$4: tries" "$1" "$tries" /s
}

# --- Tables in one session ------------------------------------------------------

# One session updates rows of many tables in turn; every row once, so that its version is 1. The first pass over the
# tables, which makes plans, is timed by itself.
scale_tables() {
    local tables
    for tables in $TABLE_COUNTS; do
        progress "tables: $tables, warming up"
        make_tables "$tables"
        progress "calls over $tables tables"
        session_over_tables "$tables" >"$WORK/session" 2>"$WORK/session.log" || { show "$WORK/session.log" && die "calls over $tables tables failed"; }
        end_progress
        while IFS='|' read -r what value unit; do scale_row tables "$what" "$tables" "$value" "$unit"; done <"$WORK/session"
        psql -qX -c "SET client_min_messages = warning" -c "DROP SCHEMA many CASCADE" >/dev/null 2>&1 || drop_tables "$tables"
    done
    scale_table tables "Tables: one session, calls from inside the server" "tables in turn"
}

make_tables() {
    psql -qX -v ON_ERROR_STOP=1 -c "SET client_min_messages = warning" -c "CREATE SCHEMA many" >/dev/null
    local from
    for ((from = 1; from <= $1; from += 50)); do # fewer than the server has locks for
        psql -qX -v ON_ERROR_STOP=1 >/dev/null 2>"$WORK/fill.log" <<SQL || { show "$WORK/fill.log" && die "could not make the tables"; }
SET client_min_messages = warning;
DO \$\$
BEGIN
    FOR t IN $from .. least($from + 49, $1) LOOP
        EXECUTE format('CREATE TABLE many.t%s (id int PRIMARY KEY, a int, version bigint NOT NULL DEFAULT 1)', t);
        EXECUTE format('INSERT INTO many.t%s SELECT g, 0 FROM generate_series(1, %s) g', t, $CALLS / $1 + 1);
        PERFORM interlock.enable_versioning(format('many.t%s', t)::regclass);
    END LOOP;
END \$\$;
SQL
    done
}

# A schema of a thousand tables is more than one transaction has locks for.
drop_tables() {
    local from
    for ((from = 1; from <= $1; from += 50)); do
        psql -qX -c "SET client_min_messages = warning" \
            -c "DO \$\$ BEGIN FOR t IN $from .. least($from + 49, $1) LOOP EXECUTE format('DROP TABLE IF EXISTS many.t%s CASCADE', t); END LOOP; END \$\$" >/dev/null
    done
    psql -qX -c "SET client_min_messages = warning" -c "DROP SCHEMA many CASCADE" >/dev/null
}

# session_over_tables TABLES: lines of what|value|unit. The growth of memory is that of the first pass, after every table
# has been read: what any session knows of its tables does not count.
session_over_tables() {
    psql -qXAt -v ON_ERROR_STOP=1 <<SQL
CREATE TEMP TABLE tables AS SELECT t, format('many.t%s', t)::regclass AS rel FROM generate_series(1, $1) t;
CREATE PROCEDURE pg_temp.read_all() LANGUAGE plpgsql AS \$\$
DECLARE
    r regclass;
BEGIN
    FOR r IN SELECT rel FROM tables LOOP
        EXECUTE format('SELECT count(*) FROM %s WHERE id = 1', r);
        COMMIT; -- or the server's lock table would be full
    END LOOP;
END \$\$;
CREATE PROCEDURE pg_temp.pass(step int) LANGUAGE plpgsql AS \$\$
DECLARE
    r regclass;
BEGIN
    FOR r IN SELECT rel FROM tables ORDER BY t LOOP
        PERFORM interlock.versioned_update(r, step, 1, '{"a": 1}');
        COMMIT;
    END LOOP;
END \$\$;
CREATE PROCEDURE pg_temp.passes() LANGUAGE plpgsql AS \$\$
BEGIN
    FOR step IN 2 .. $CALLS / $1 + 1 LOOP
        CALL pg_temp.pass(step);
    END LOOP;
END \$\$;
CREATE TEMP VIEW memory AS SELECT sum(total_bytes) AS total,
    coalesce(sum(total_bytes) FILTER (WHERE name = 'interlock relation'), 0) AS facts,
    count(*) FILTER (WHERE name = 'interlock relation') AS relations,
    coalesce(sum(total_bytes) FILTER (WHERE name ~ '^(CachedPlan|SPI Plan)'), 0) AS plans,
    count(*) FILTER (WHERE name = 'CachedPlanSource') AS kept FROM pg_backend_memory_contexts;
CALL pg_temp.read_all();
SELECT * FROM memory \gset warm_
SELECT *, clock_timestamp() AS start FROM memory \gset before_
CALL pg_temp.pass(1);
SELECT extract(epoch FROM clock_timestamp() - :'before_start') * 1e6 / $1 AS first \gset
SELECT *, clock_timestamp() AS start FROM memory \gset after_
CALL pg_temp.passes();
SELECT extract(epoch FROM clock_timestamp() - :'after_start') * 1e6 / ($1 * ($CALLS / $1)) AS later \gset
SELECT 'the first versioned_update of each table', round(:first, 1), 'us'
UNION ALL SELECT 'versioned_update', round(:later, 1), 'us'
UNION ALL SELECT 'memory of the session for a table', round((:after_total - :before_total)::numeric / $1), 'bytes'
UNION ALL SELECT 'of it what is known of the table', round(:after_facts::numeric / greatest(:after_relations, 1)), 'bytes'
UNION ALL SELECT 'of it a plan', round((:after_plans - :before_plans)::numeric / greatest(:after_kept - :before_kept, 1)), 'bytes'
UNION ALL SELECT 'plans that are kept', :after_kept - :before_kept, 'plans';
SQL
}
