# turns.sh: one line of the benchmark with several clients. To be sourced by script/bench.
#
# Which session the scheduler puts beside which client decides whether they wake each other on one core or across two: a
# third of the rate, for seconds at a time, and for one side of a line longer than for another. So each core has its share
# of the clients, with their sessions, and the sides take turns of TURN seconds: all others are stopped.

TURN=0.02

# Loads whose statements last longer than a turn: they would go on in that of another side.
declare -A LONG=()

can_take_turns() { [ -e "$WORK/$1.load" ] && [ -z "${LONG[$1]:-}" ] && [ -z "${UNAVAILABLE[$1]:-}" ]; }

# take_turns CLIENTS LOAD...: fills SAMPLES with ROUNDS samples of each, as if it alone had run for SECONDS_EACH.
take_turns() {
    local clients=$1 sides=("${@:2}") pids=() times=() side since seconds
    [ ${#sides[@]} -gt 0 ] || return 0
    seconds=$((ROUNDS * SECONDS_EACH * ${#sides[@]} + 2)) # the first and the last are not whole
    pin "$(cores_for "$clients")"
    rm -f "$WORK"/turns.*
    mkfifo "$WORK/turns.clock"
    for side in "${!sides[@]}"; do start_side; done
    pin_sessions
    for side in "${!sides[@]}"; do signal_side STOP; done
    since=$(printf '%(%s)T')
    run_turns
    for side in "${!sides[@]}"; do end_side; done
}

# start_side: a pgbench on each core. No two sides have the same rows.
start_side() {
    local core first last cores
    cores=$(nproc)
    for ((core = 0; core < cores; core++)); do
        first=$((clients * core / cores)) last=$((clients * (core + 1) / cores))
        [ $last -gt $first ] || continue
        PGAPPNAME="core $core" taskset -c "$core" pgbench -n -M prepared -c $((last - first)) -T "$seconds" \
            -D clients=$((clients * ${#sides[@]})) -D base=$((clients * side + first)) -f "$WORK/${sides[side]}.load" \
            --log --aggregate-interval=1 --log-prefix="$WORK/turns.$side" >"$WORK/turns.$side.$core.out" 2>&1 &
        pids[side]+=" $!"
    done
}

pin_sessions() {
    local pid core wanted=$((clients * ${#sides[@]})) until=$((SECONDS + 20))
    local sessions="SELECT pid, substr(application_name, 6) FROM pg_stat_activity WHERE application_name LIKE 'core %'"
    while [ "$(psql -qXAtc "$sessions" | wc -l)" -lt $wanted ] && [ $SECONDS -lt $until ]; do sleep 0.1; done
    psql -qXAt -F ' ' -c "$sessions" |
        while read -r pid core; do taskset -pc "$core" "$pid" >/dev/null 2>&1 || true; done
}

# signal_side SIGNAL: to those of its pgbenches that are still there.
signal_side() {
    # shellcheck disable=SC2086
    kill -"$1" ${pids[side]} 2>/dev/null || true
}

# run_turns: until the last pgbench's time is up. Every other cycle goes backwards, so that nobody always follows the same.
run_turns() {
    local end=$((SECONDS + seconds + 1)) cycle start i
    for ((cycle = 0; SECONDS < end; cycle++)); do
        for i in "${!sides[@]}"; do
            side=$((cycle % 2 ? ${#sides[@]} - 1 - i : i))
            start=${EPOCHREALTIME/./}
            signal_side CONT
            read -rt "$TURN" <>"$WORK/turns.clock" || true
            signal_side STOP
            times[side]=$((${times[side]:-0} + ${EPOCHREALTIME/./} - start))
        done
    done
}

# end_side: the rate in each round's time, of which the side had its share.
end_side() {
    local pid failed= all=0 i
    signal_side CONT
    for pid in ${pids[side]}; do wait "$pid" || failed=1; done
    if [ -n "$failed" ]; then
        UNAVAILABLE[${sides[side]}]="failed: $(cat "$WORK/turns.$side".*.out | grep -m 1 -iE 'error|fatal|cannot|could not')"
        return
    fi
    for i in "${times[@]}"; do all=$((all + i)); done
    SAMPLES[${sides[side]}]=$(awk -v since="$since" -v rounds="$ROUNDS" -v span=$((SECONDS_EACH * ${#sides[@]})) -v share="${times[side]}" -v all="$all" '
        FNR == 1 {second = 0}
        $1 > since {done[int(second++ / span)] += $2}
        END {for (i = 0; i < rounds; i++) printf "%.1f ", done[i] / (span * share / all)}' "$WORK/turns.$side".[0-9]*[0-9])
}
