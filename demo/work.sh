# work.sh: databases, loads, workers and questions of the scenarios. To be sourced by script/demo.
#
#   new_database SETUP [SQL]   a fresh one with the tables of load/SETUP.sql, and the extension set up by SQL
#   load LOAD [OPTION...]      CLIENTS clients that run load/LOAD.load for SECONDS_EACH seconds
#   work SCRIPT TICKS          CLIENTS workers that run load/SCRIPT.psql at each tick
#   kill_server                kills the server and starts it again
#   ask SQL, refusal SQL       the answer of a query, the error of a statement
#   say TEXT                   a line for the reader
#   row WHAT WITHOUT WITH      a line of the summary
#   lose NUMBER                what was lost with the extension

# new_database SETUP [SQL]: a fresh one with the tables of SETUP.sql, and the extension set up by SQL.
new_database() {
    psql -qXd postgres -c 'DROP DATABASE IF EXISTS demo WITH (FORCE)' -c 'CREATE DATABASE demo' 2>/dev/null
    psql -qXd demo -v ON_ERROR_STOP=1 -f "$ROOT/demo/load/$1.sql"
    [ $# -lt 2 ] || psql -qXd demo -v ON_ERROR_STOP=1 -c 'CREATE EXTENSION pg_interlock' -c "$2" >/dev/null
}

load() {
    pgbench -n -c "$CLIENTS" -j 2 -T "$SECONDS_EACH" "${@:2}" -f "$(script_of "$1")" demo >"$WORK/pgbench.log" 2>&1 || {
        show "$WORK/pgbench.log" 20
        die "the load $1 failed"
    }
}

# script_of LOAD: its script, with longer thinking for --slow.
script_of() {
    local script=$ROOT/demo/load/$1.load
    if [ -n "$SLOW" ]; then
        sed 's/^\\sleep .*/\\sleep 1200 ms/' "$script" >"$WORK/$1.slow.load"
        script=$WORK/$1.slow.load
    fi
    echo "$script"
}

# work SCRIPT TICKS: every worker is a psql that runs the script at each tick. Who falls asleep is woken up when a later report has
# been made.
work() {
    local start=$(ask "SELECT clock_timestamp() + '0.2 s'") worker workers=()
    ask "INSERT INTO accident SELECT tick, 'STOP' FROM generate_series(2, $2 - 1, 4) tick UNION ALL SELECT 1, 'KILL'" >/dev/null
    {
        for worker in $(seq "$CLIENTS"); do
            psql -qXAtd demo -v start="$start" -v worker="$worker" -v VERBOSITY=verbose >/dev/null 2>"$WORK/worker.$worker.log" \
                < <(for tick in $(seq "$2"); do printf "\\\\set tick %s\n\\\\i '%s'\n" "$tick" "$ROOT/demo/load/$1.psql"; done) &
            workers[worker]=$!
        done
        while [ -n "$(jobs -pr)" ]; do
            for worker in $(ask "SELECT worker FROM accident WHERE signal = 'STOP' GROUP BY worker
                HAVING max(tick) < (SELECT max(tick) FROM made) OR max(at) < clock_timestamp() - interval '5 s'"); do
                kill -CONT "${workers[worker]}" || true # again and again: it may be about to fall asleep
            done
            sleep 0.05
        done
    } 2>"$WORK/work.log" # bash reports the killed one
}

# end_workers: also those who sleep.
end_workers() {
    local running=$(jobs -pr)
    # shellcheck disable=SC2086
    [ -z "$running" ] || kill -KILL $running 2>/dev/null || true
}

# kill_server: and start it again, as soon as all of its processes have noticed.
kill_server() {
    kill -KILL "$(head -n 1 "$WORK/data/postmaster.pid")"
    local tries
    for tries in $(seq 100); do
        sleep 0.1
        as_server "$SERVER_BIN/pg_ctl" -D "$WORK/data" -l "$WORK/server.log" -w start >"$WORK/start.log" 2>&1 && return
    done
    show "$WORK/server.log"
    die "the server did not come back"
}

# wait_until SQL: until it says yes, or two minutes have passed and something must be wrong.
wait_until() {
    local tries
    for tries in $(seq 600); do
        if [ "$(ask "$1")" = t ]; then return; fi
        sleep 0.2
    done
}

ask() { psql -qXAtd demo -c "$1"; }

# refusal SQL: the error it ends with.
refusal() { psql -qXAtd demo -c "$1" 2>&1 | sed -n 's/^ERROR:  //p' | head -n 1; }

say() { printf '  %s\n' "$*"; }

# row WHAT WITHOUT WITH: a line of the summary; whatever is lost with the extension counts.
row() {
    TABLE+=("$1|$2|$3")
    lose "$3"
}

lose() { LOSSES=$((LOSSES + $1)); }

summary() {
    heading "Lost"
    local line what without with
    printf '  %-32s %18s %8s\n' "" without with
    for line in "${TABLE[@]}"; do
        IFS='|' read -r what without with <<<"$line"
        printf '  %-32s %18s %8s\n' "$what" "$without" "$with"
    done
    echo
}
