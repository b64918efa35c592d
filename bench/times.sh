# times.sh: lines that compare times of one client: large updates and the sweep. To be sourced by script/bench.

# --- Large updates ----------------------------------------------------------------

# What a row of a large UPDATE costs with history: recorded, suppressed, and by a trigger in PL/pgSQL.
BULKS=(bulk_plain bulk_recorded bulk_suppressed bulk_own)

bulk_lines() {
    local name="UPDATE of 100,000 rows with history" round load
    wanted "$name" && [ -z "$TARGETS" ] || return 0
    [ -z "$AGAINST" ] || BULKS=(bulk_recorded "bulk_recorded@$AGAINST" bulk_suppressed "bulk_suppressed@$AGAINST")
    if [ -n "${COUNTING:-}" ]; then
        WANTED=$((WANTED + TIME_ROUNDS * ${#BULKS[@]}))
        return
    fi
    SAMPLES=()
    progress "$name, warming up"
    for ((round = 0; round <= TIME_ROUNDS; round++)); do
        for load in "${BULKS[@]}"; do
            progress "$name, round $round of $TIME_ROUNDS"
            take_time "$load" "$(update_all "$load")" "$round"
        done
    done
    end_progress
    heading "$name, one client, time of a row (less is better)"
    if [ -n "$AGAINST" ]; then
        time_row "$name" bulk_recorded "$AGAINST" "bulk_recorded@$AGAINST" - us
        time_row "${name/ with history/, history suppressed}" bulk_suppressed "$AGAINST" "bulk_suppressed@$AGAINST" - us
        return
    fi
    time_row "$name" bulk_recorded "without a trigger" bulk_plain - us
    time_row "${name/ with history/, history suppressed}" bulk_suppressed "without a trigger" bulk_plain - us
    time_row "$name" bulk_recorded "a trigger in PL/pgSQL" bulk_own - us
}

# update_all LOAD: microseconds a row.
update_all() {
    local table=plain before="SELECT 1"
    if [[ $1 == *@* ]]; then
        against update_all "${1%@*}"
        return
    fi
    case $1 in
        bulk_recorded) table=recorded ;;
        bulk_suppressed) table=recorded before="SELECT interlock.suppress_history('recorded')" ;;
        bulk_own) table=own.recorded ;;
    esac
    psql -qX -v ON_ERROR_STOP=1 -c "TRUNCATE recorded_history, own.history" -c "VACUUM $table" -c CHECKPOINT
    psql -qXAt -v ON_ERROR_STOP=1 -c BEGIN -c "$before" -c '\timing on' -c "UPDATE $table SET a = a + 1" -c '\timing off' -c COMMIT |
        awk '/^Time/ {print $2 / 100}'
}

# take_time LOAD TIME ROUND: the first round does not count. No time: it failed.
take_time() {
    [ -n "$2" ] || UNAVAILABLE[$1]="failed, see the output above"
    [ "$3" = 0 ] || SAMPLES[$1]+="$2 " DONE=$((DONE + 1))
}

# time_row NAME LOAD AGAINST LOAD TARGET UNIT
time_row() {
    print_side "$1" "$2" "$6"
    add_row "$1" 0 "$3" "$2" "$4" "$5" "$6"
}

# --- The sweep -----------------------------------------------------------------

# Its time must grow with the expired rows, not with the table. In milliseconds; ROWS:EXPIRED, and @COMMIT for another commit.
SWEEPS=(10000:1000 100000:1000 1000000:1000 1000000:10000)

sweep_lines() {
    local name="sweep, 1,000 of 1,000,000 rows expired"
    wanted "$name" || return 0
    [ -z "$TARGETS" ] || SWEEPS=(10000:1000 1000000:1000)
    [ -z "$AGAINST" ] || SWEEPS=(1000000:1000 "1000000:1000@$AGAINST")
    if [ -n "${COUNTING:-}" ]; then
        WANTED=$((WANTED + TIME_ROUNDS * ${#SWEEPS[@]}))
        return
    fi
    on_both set_up_sweeps
    run_sweeps
    heading "sweep, one client, time (less is better)"
    if [ -n "$AGAINST" ]; then
        time_row "$name" 1000000:1000 "$AGAINST" "1000000:1000@$AGAINST" - ms
        return
    fi
    time_row "$name" 1000000:1000 "1,000 of 10,000 rows" 10000:1000 3 ms
    [ -z "$TARGETS" ] || return 0
    time_row "sweep, 1,000 of 100,000 rows expired" 100000:1000 "1,000 of 10,000 rows" 10000:1000 - ms
    time_row "sweep, 10,000 of 1,000,000 rows expired" 1000000:10000 "1,000 of 1,000,000 rows" 1000000:1000 - ms
}

set_up_sweeps() {
    local rows
    progress "filling tables for the sweep, warming up"
    psql -qX -c "ALTER SYSTEM SET interlock.sweeper = off" -c "SELECT pg_reload_conf()" >/dev/null
    for rows in $(printf '%s\n' "${SWEEPS[@]%:*}" | uniq); do
        psql -qX -v ON_ERROR_STOP=1 -c "CREATE TABLE swept_$rows (id int PRIMARY KEY, body text)" \
            -c "INSERT INTO swept_$rows SELECT g, repeat('x', 100) FROM generate_series(1, $rows) g" \
            -c "SELECT interlock.enable_marker('swept_$rows')" -c "VACUUM ANALYZE swept_$rows" >/dev/null 2>&1
    done
}

run_sweeps() {
    local round sweep
    SAMPLES=()
    for ((round = 0; round <= TIME_ROUNDS; round++)); do
        for sweep in "${SWEEPS[@]}"; do
            progress "sweep, ${sweep#*:} of ${sweep%:*} rows, round $round of $TIME_ROUNDS"
            take_time "$sweep" "$(sweep_table "$sweep")" "$round"
        done
    done
    end_progress
}

# sweep_table ROWS:EXPIRED: milliseconds. Marked behind the trigger's back, or each round would wait for deadlines.
sweep_table() {
    if [[ $1 == *@* ]]; then
        against sweep_table "${1%@*}"
        return
    fi
    set -- "${1%:*}" "${1#*:}"
    psql -qX -v ON_ERROR_STOP=1 -c "SET session_replication_role = replica" \
        -c "UPDATE swept_$1 SET lock_status = 1, lock_by = 'x', lock_time = now(), lock_until = now() WHERE id % ($1 / $2) = 0" \
        -c "VACUUM swept_$1"
    psql -qXAt -v ON_ERROR_STOP=1 -v expired="$2" -c '\timing on' \
        -c "SELECT 1 / (sum(released) = $2)::int FROM interlock.sweep()" | awk '/Time/ {print $2}'
}
