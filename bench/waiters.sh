# waiters.sh: what the views cost while ten sessions wait and while thousands do, and how long it takes until all of them have
# what they wait for. To be sourced by script/bench, for script/bench --scale.
#
# On a server of its own, as so many connections make every server slower. A session takes a few megabytes: on a machine without
# room for all there are fewer.

WAITER_COUNTS="10 5000"
WAITER_MEMORY=3 # megabytes of a session
WAITER_KINDS=4  # of waiters.c

scale_waiters() {
    local count counts=() most
    most=$(most_waiters)
    for count in $WAITER_COUNTS; do counts+=($((count < most ? count : most))); done
    need_packages gcc libc6-dev libpq-dev
    gcc -O2 -o "$LOADS/waiters" -I"$("$PG_CONFIG" --includedir)" "$ROOT/bench/load/waiters.c" -lpq
    add_settings "max_connections = $((counts[-1] + 50))"
    psql -qX -v ON_ERROR_STOP=1 -c "CREATE SCHEMA waits" -c "CREATE TABLE waits.place AS SELECT 1 AS id, 0 AS n" -c "ALTER TABLE waits.place ADD PRIMARY KEY (id)"
    for count in "${counts[@]}"; do measure_waiters "$count"; done
    psql -qX -c "DROP SCHEMA waits CASCADE" 2>/dev/null
    add_settings "max_connections = 100"
    scale_table waiters "Views: one client, time of a query" "sessions that wait"
    scale_table grants "Grants: from the release of all until the last waiter has released, too" "sessions that wait"
}

# most_waiters: as many as memory, open files and processes of this machine allow.
most_waiters() {
    local memory files processes
    memory=$(awk -v each="$WAITER_MEMORY" '/MemAvailable/ {print int($2 / 1024 * 0.8 / each)}' /proc/meminfo)
    files=$(($(ulimit -n) - 100))
    processes=$(($(cat /proc/sys/kernel/pid_max) / 2))
    printf '%s\n' "$memory" "$files" "$processes" | sort -n | head -n 1
}

# add_settings SETTING...: restarts the server with them.
add_settings() {
    printf '%s\n' "$@" >>"$WORK/data/postgresql.conf"
    restart_server
}

# measure_waiters COUNT: the client is asked for the next kind by a line.
measure_waiters() {
    local count=$1 line kind waiters seconds pid crowd from to
    progress "$count sessions begin to wait"
    coproc CROWD { exec "$LOADS/waiters" "$count" 2>"$LOADS/load.log"; }
    crowd=$CROWD_PID
    exec {from}<&"${CROWD[0]}" {to}>&"${CROWD[1]}" # its own are gone as soon as it has ended
    read -ru "$from" line || { show "$LOADS/load.log" && die "could not make $count sessions wait"; }
    await_waiters "$count"
    pid=$(psql -qXAt -c "SELECT pid FROM pg_stat_activity WHERE application_name = 'waiter' ORDER BY backend_start DESC LIMIT 1")
    time_view "$count" "lease_waiters" "SELECT count(*) FROM interlock.lease_waiters"
    time_view "$count" "held, kind = 'lease'" "SELECT sum(waiters) FROM interlock.held WHERE kind = 'lease'"
    time_view "$count" "held, kind = 'key_lock'" "SELECT sum(waiters) FROM interlock.held WHERE kind = 'key_lock'"
    time_view "$count" "held" "SELECT sum(waiters) FROM interlock.held"
    time_view "$count" "blocking" "SELECT count(*) FROM interlock.blocking"
    time_view "$count" "blocking, one pid" "SELECT * FROM interlock.blocking WHERE pid = $pid"
    time_call "$count" "script/top --once" "$ROOT/script/top" --once
    time_view "$count" "of the server: pg_stat_activity" "SELECT count(*) FROM pg_stat_activity"
    time_view "$count" "of the server: pg_locks" "SELECT count(*) FROM pg_locks"
    time_view "$count" "of the server: pg_blocking_pids of each" \
        "SELECT count(pg_blocking_pids(pid)) FROM pg_stat_activity WHERE application_name = 'waiter' AND wait_event_type = 'Lock'"
    for ((line = 0; line < WAITER_KINDS; line++)); do
        echo >&"$to"
        IFS=$'\t' read -ru "$from" kind waiters seconds || break
        scale_row grants "$kind, for $(((100 * waiters + count / 2) / count)) % of them" "$count" "$seconds" s
    done
    exec {from}<&- {to}>&-
    wait "$crowd" || { show "$LOADS/load.log" && die "not all of $count sessions got what they waited for"; }
    end_progress
}

await_waiters() {
    local until=$((SECONDS + 600)) waiting=0
    while [ "$waiting" != "$1" ]; do
        [ $SECONDS -lt $until ] || die "only $waiting of $1 sessions wait"
        sleep 0.5
        waiting=$(psql -qXAt -c "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'waiter' AND state = 'active' AND wait_event_type IN ('Lock', 'Extension')")
    done
}

# time_view COUNT WHAT QUERY: in one session, behind one run that does not count.
time_view() {
    local round query="$3;"
    for ((round = 0; round < ROUNDS; round++)); do query+=$'\n'"$3;"; done
    progress "$1 sessions wait: $2"
    psql -qXAt -v ON_ERROR_STOP=1 -o /dev/null <<<"\\timing on"$'\n'"$query" >"$WORK/times" || die "could not query $2"
    # shellcheck disable=SC2046
    scale_row waiters "$2" "$1" "$(middle $(awk '/^Time:/ {print $2}' "$WORK/times" | tail -n +2))" ms
}

# time_call COUNT WHAT COMMAND...
time_call() {
    local round start times=()
    progress "$1 sessions wait: $2"
    for ((round = 0; round <= ROUNDS; round++)); do
        start=${EPOCHREALTIME/./}
        "${@:3}" >"$WORK/call" 2>&1 || { show "$WORK/call" && die "could not run $2"; }
        times+=("$(awk -v us=$((${EPOCHREALTIME/./} - start)) 'BEGIN {printf "%.1f", us / 1000}')")
    done
    scale_row waiters "$2" "$1" "$(middle "${times[@]:1}")" ms
}
