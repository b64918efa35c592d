# turns.sh: one line of the benchmark with several clients. To be sourced by script/bench.
#
# Which session the scheduler puts beside which client decides whether they wake each other on one core or across two: a
# third of the rate, for seconds at a time, and for one side of a line longer than for another. So each core has its share
# of the clients, with their sessions, and the sides take turns: all others are stopped.

TURN=0.02
GAP=0.001 # seconds between two turns, in which the statements that were under way come to their end

# Loads whose statements last longer than a gap: they would go on in the turn of another side.
declare -A LONG=()

TURNING=() # processes

can_take_turns() { [ -e "$(load_file "$1")" ] && [ -z "${LONG[${1%@*}]:-}" ] && [ -z "${UNAVAILABLE[$1]:-}" ]; }

# take_turns CLIENTS LOAD...: fills SAMPLES with ROUNDS samples of each, as if it alone had run for SECONDS_EACH.
take_turns() {
    local clients=$1 sides=("${@:2}") pids=() times=() side since spent
    [ ${#sides[@]} -gt 0 ] || return 0
    pin "$(cores_for "$clients")"
    rm -f "$WORK"/turns.*
    mkfifo "$WORK/turns.clock"
    for side in "${!sides[@]}"; do start_side; done
    pin_sessions
    for side in "${!sides[@]}"; do signal_side STOP; done
    since=$(printf '%(%s)T')
    run_turns
    for side in "${!sides[@]}"; do end_side; done
    TURNING=()
}

# start_side: a pgbench on each core, until it is told that its time is over. :id is a row that no other side draws.
start_side() {
    local i first last
    for i in "${!CORES[@]}"; do
        first=$((clients * i / ${#CORES[@]})) last=$((clients * (i + 1) / ${#CORES[@]}))
        [ $last -gt $first ] || continue
        PGAPPNAME="core ${CORES[i]}" PGHOST=$(host_of "${sides[side]}") PGOPTIONS=$(options_of "${sides[side]}") taskset -c "${CORES[i]}" pgbench -n -M prepared -c $((last - first)) -T 86400 \
            -D clients=$((clients * ${#sides[@]})) -D base=$((clients * side + first)) -f "$(load_file "${sides[side]}")" \
            --log --aggregate-interval=1 --log-prefix="$WORK/turns.$side" >"$WORK/turns.$side.$i.out" 2>&1 &
        pids[side]+=" $!"
        TURNING+=($!)
    done
}

# pin_sessions: waits for all of them, or until one has failed.
pin_sessions() {
    local pid core wanted=$((clients * ${#sides[@]})) until=$((SECONDS + 20))
    while [ "$(sessions | wc -l)" -lt $wanted ] && [ $SECONDS -lt $until ] && kill -0 "${TURNING[@]}" 2>/dev/null; do
        sleep 0.1
    done
    sessions |
        while read -r pid core; do taskset -pc "$core" "$pid" >/dev/null 2>&1 || true; done
}

# sessions: of the sides of this line, on both servers if there is another commit, and the core of each.
sessions() {
    on_both psql -qXAt -F ' ' -c "SELECT pid, substr(application_name, 6) FROM pg_stat_activity WHERE application_name LIKE 'core %'"
}

# signal_side SIGNAL: to those of its pgbenches that are still there.
signal_side() {
    # shellcheck disable=SC2086
    kill -"$1" ${pids[side]} 2>/dev/null || true
}

tick() { read -rt "$1" <>"$WORK/turns.clock" || true; }

# run_turns: for two seconds more than are counted, as the first and the last are not whole. Every other cycle goes
# backwards, so that nobody always follows the same side.
run_turns() {
    local end=$((SECONDS + ROUNDS * SECONDS_EACH * ${#sides[@]} + 3)) began=${EPOCHREALTIME/./} stop= cycle start i
    trap 'stop=1' INT TERM # to leave in the middle of a tick is more than the shell can do
    for ((cycle = 0; SECONDS < end && !stop; cycle++)); do
        for i in "${!sides[@]}"; do
            side=$((cycle % 2 ? ${#sides[@]} - 1 - i : i))
            start=${EPOCHREALTIME/./}
            signal_side CONT
            tick "$TURN"
            signal_side STOP
            times[side]=$((${times[side]:-0} + ${EPOCHREALTIME/./} - start))
            tick "$GAP"
        done
    done
    trap 'exit 130' INT TERM
    [ -z "$stop" ] || exit 130
    spent=$((${EPOCHREALTIME/./} - began))
}

# end_side: the alarm is what pgbench ends by. A session that does not answer must not keep us for ever.
end_side() {
    local pid failed= until=$((SECONDS + 60))
    signal_side ALRM
    signal_side CONT
    # shellcheck disable=SC2086
    while kill -0 ${pids[side]} 2>/dev/null && [ $SECONDS -lt $until ]; do sleep 0.05; done
    signal_side KILL
    for pid in ${pids[side]}; do wait "$pid" 2>/dev/null || failed=1; done
    SAMPLES[${sides[side]}]=$([ -n "$failed" ] || side_rates)
    if [[ ${SAMPLES[${sides[side]}]} != *[1-9]* ]]; then
        unset "SAMPLES[${sides[side]}]"
        UNAVAILABLE[${sides[side]}]="failed: $(grep -hm 1 -iE 'error|fatal|cannot|could not|failed' "$WORK/turns.$side".*.out || echo "no transactions")"
    fi
}

# side_rates: in each round's time, of which the side had its share.
side_rates() {
    awk -v since="$since" -v rounds="$ROUNDS" -v span=$((SECONDS_EACH * ${#sides[@]})) -v share="${times[side]}" -v spent="$spent" '
        FNR == 1 {second = 0}
        $1 > since {done[int(second / span)] += $2; second++}
        END {for (i = 0; i < rounds; i++) printf "%.1f ", done[i] / (span * share / spent)}' "$WORK/turns.$side".[0-9]*[0-9]
}

# end_turns: leaves nobody behind who is stopped.
end_turns() { [ ${#TURNING[@]} = 0 ] || kill -KILL "${TURNING[@]}" 2>/dev/null || true; }
