# measure.sh: one line of the benchmark. To be sourced by script/bench.
#
#   write NAME LINE...                            a load for pgbench
#   line CLIENTS NAME LOAD [PEER LOAD TARGET]...  measures them all in turn; - for no target
#
# A load is a script for pgbench made by write, or a name that sample knows. With --targets the others are left out. With
# --against COMMIT the only peer is the same load on the server of that commit, named LOAD@COMMIT.

# fsync is off in every cluster of these scripts, and nothing waits for a disk: what is measured is work, not disks.
# Nobody else may start work in the middle of a line: tables are vacuumed before each line instead.
SETTINGS=("synchronous_commit = off" "max_wal_size = 8GB" "checkpoint_timeout = 1h" "autovacuum = off"
    "shared_buffers = $(($(awk '/MemTotal/ {print $2}' /proc/meminfo) / 4096))MB")

declare -A UNAVAILABLE=() # load: why it cannot be measured
declare -A SAMPLES=()     # load: its rounds so far
WANTED=0
DONE=0

# write NAME LINE...: a load. :id is a row, of each client's own: a version conflict would end the client. A pgbench has the
# clients from :base of :clients.
write() {
    local name=$1
    shift
    printf '%s\n' '\set id random(0, 100000 / :clients - 1) * :clients + :base + :client_id + 1' "$@" >"$LOADS/$name.load"
}

# load_file LOAD and host_of LOAD: its script, and the socket of its server.
load_file() { echo "$LOADS/${1%@*}.load"; }
host_of() { [[ $1 == *@* ]] && echo "$WORK/against/socket" || echo "$PGHOST"; }

# restart_server [VARIABLE=VALUE]...: with these in its environment.
restart_server() {
    as_server env "$@" "$SERVER_BIN/pg_ctl" -D "$WORK/data" -l "$WORK/server.log" -m fast -w -t 300 restart >"$WORK/start.log" 2>&1 ||
        { show "$WORK/server.log" && die "could not restart the server"; }
}

# make_empty_functions: what functions and triggers that do nothing cost is what ours are measured by.
make_empty_functions() {
    local file="'$WORK/empty.so'"
    need_packages gcc libc6-dev
    gcc -O2 -fPIC -shared -I"$(server_headers)" -o "$WORK/empty.so" "$ROOT/bench/load/empty.c"
    psql -qX -v ON_ERROR_STOP=1 \
        -c "CREATE FUNCTION empty(text) RETURNS void LANGUAGE c AS $file" \
        -c "CREATE FUNCTION empty_acquire(key text, ttl interval) RETURNS void LANGUAGE c AS $file, 'empty'" \
        -c "CREATE FUNCTION empty_release(key text, token bigint) RETURNS void LANGUAGE c AS $file, 'empty'" \
        -c "CREATE FUNCTION empty_trigger() RETURNS trigger LANGUAGE c AS $file" \
        -c "CREATE TRIGGER empty BEFORE UPDATE ON triggered FOR EACH ROW EXECUTE FUNCTION empty_trigger()"
}

# options_of LOAD: the settings of its sessions. A load whose name begins with uncounted_ counts no contention.
options_of() { [[ $1 != uncounted_* ]] || echo "-c interlock.count_contention=off"; }

line() {
    local clients=$1 name=$2 ours=$3 loads=() judged=() i
    shift 3
    wanted "$name" || return 0
    if [ -n "$TARGETS" ]; then
        for ((i = 1; i <= $#; i += 3)); do [ "${*:i+2:1}" = - ] || judged+=("${@:i:3}"); done
        set -- "${judged[@]}"
        [ $# -gt 0 ] || return 0
    fi
    [ -z "$AGAINST" ] || set -- "$AGAINST" "$ours@$AGAINST" -
    loads=("$ours")
    for ((i = 2; i <= $#; i += 3)); do loads+=("${!i}"); done
    if [ -n "${COUNTING:-}" ]; then
        WANTED=$((WANTED + ROUNDS * ${#loads[@]}))
        return
    fi
    run_rounds "$clients" "$name" "${loads[@]}"
    heading "$name, $(clients_in_words "$clients")"
    print_side "$name" "$ours" /s
    while [ $# -gt 0 ]; do
        add_row "$name" "$clients" "$1" "$ours" "$2" "$3" /s
        shift 3
    done
}

wanted() { [[ $1 =~ $ONLY ]]; }

# run_rounds CLIENTS NAME LOAD...: fills SAMPLES. Several clients of loads for pgbench take turns instead of rounds, and so does
# one client on two servers: one pgbench does not mix them.
run_rounds() {
    local clients=$1 name=$2 load turning=() others=()
    shift 2
    progress "$name, $(clients_in_words "$clients"), warming up"
    on_both psql -qX -c "TRUNCATE keys, full_keys, interlock.idempotency, recorded_history, own.history" -c "VACUUM" -c "CHECKPOINT" >/dev/null 2>&1
    for load; do take_sample "$clients" "$load" 1; done
    SAMPLES=() # they do not count
    for load; do
        if [ "$clients$AGAINST" != 1 ] && can_take_turns "$load"; then turning+=("$load"); else others+=("$load"); fi
    done
    progress "$name, $(clients_in_words "$clients")"
    take_turns "$clients" "${turning[@]}"
    DONE=$((DONE + ROUNDS * ${#turning[@]}))
    alternate "${others[@]}"
    end_progress
}

# alternate LOAD...: every other round goes backwards, so that nobody always comes first.
alternate() {
    local round
    for ((round = 1; round <= ROUNDS && $# > 0; round++)); do
        progress "$name, $(clients_in_words "$clients"), round $round of $ROUNDS"
        # shellcheck disable=SC2046
        take_samples "$clients" "$SECONDS_EACH" $(printf '%s\n' "$@" | if [ $((round % 2)) = 1 ]; then cat; else tac; fi)
        DONE=$((DONE + $#))
    done
}

# take_samples CLIENTS SECONDS LOAD...: adds a sample of each to SAMPLES. One client's loads for pgbench are mixed, and those
# of the client in C always, so that whatever else happens on the machine happens to all of them.
take_samples() {
    local clients=$1 seconds=$2 load scripts=() in_c=() alone=()
    shift 2
    for load; do
        if [ -n "${UNAVAILABLE[$load]:-}" ]; then
            continue
        elif [[ ${load%@*} == *_c ]]; then
            in_c+=("$load")
        elif [ "$clients$AGAINST$(options_of "$load")" = 1 ] && [ -e "$LOADS/$load.load" ]; then
            scripts+=("$load")
        else
            alone+=("$load")
        fi
    done
    take_mixed mix_scripts 1 "$seconds" "${scripts[@]}" || alone+=("${scripts[@]}")
    take_mixed mix_in_c "$clients" "$seconds" "${in_c[@]}" || alone+=("${in_c[@]}")
    for load in "${alone[@]}"; do take_sample "$clients" "$load" "$seconds"; done
}

# take_mixed MIX CLIENTS SECONDS LOAD...: fails if there is nothing to mix.
take_mixed() {
    local mix=$1 clients=$2 seconds=$3 rates
    shift 3
    [ $# -gt 1 ] || return
    pin "$(cores_for "$clients")"
    read -ra rates <<<"$("$mix" "$clients" $((seconds * $#)) "$@" 2>"$LOADS/load.log" | tr '\n' ' ')"
    [ ${#rates[@]} = $# ] || return
    for load; do
        SAMPLES[$load]+="${rates[0]} "
        rates=("${rates[@]:1}")
    done
}

# mix_scripts 1 SECONDS LOAD...: the rate of each, from its mean time. Which one is next is drawn for each transaction.
mix_scripts() {
    local seconds=$2 load scripts=()
    shift 2
    for load; do scripts+=(-f "$LOADS/$load.load"); done
    rm -f "$WORK"/mixed.*
    timeout $((seconds + 60)) taskset -c "${CORES[0]}" pgbench -n -M prepared -D clients=1 -D base=0 -c 1 -T "$seconds" "${scripts[@]}" --log --log-prefix="$WORK/mixed" >&2 &&
        awk -v loads=$# '{calls[$4]++; time[$4] += $3} END {for (i = 0; i < loads; i++) if (calls[i]) print 1e6 * calls[i] / time[i]}' "$WORK"/mixed.*
}

# mix_in_c CLIENTS SECONDS LOAD...: the same; they take turns.
mix_in_c() {
    local clients=$1 seconds=$2 load sides=()
    shift 2
    for load; do sides+=("$(side_in_c "$load")"); done
    timeout $((seconds + 60)) taskset -c "$(cores_for "$clients")" "$LOADS/lock_pairs" "$clients" "$seconds" "${sides[@]}"
}

# take_sample CLIENTS LOAD SECONDS: adds to SAMPLES. What fails once is not measured again.
take_sample() {
    local value
    [ -z "${UNAVAILABLE[$2]:-}" ] || return 0
    if value=$(sample "$@") && [ -n "$value" ]; then
        SAMPLES[$2]+="$value "
    else
        UNAVAILABLE[$2]="failed: $(grep -m 1 -iE 'error|fatal|cannot|could not' "$LOADS/load.log" || tail -n 1 "$LOADS/load.log")"
    fi
}

# Those that we may use.
mapfile -t CORES < <(taskset -cp $$ | sed 's/.*: //' | tr , '\n' | while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done)

# cores_for CLIENTS: one client and the server take turns. They stay on one core, or it would be the scheduler's choice of
# cores that is measured.
cores_for() { [ "$1" = 1 ] && echo "${CORES[0]}" || (IFS=, && echo "${CORES[*]}"); }

# sample CLIENTS LOAD SECONDS: how many a second.
sample() {
    local cores run
    if [[ $2 == *@* ]]; then
        against sample "$1" "${2%@*}" "$3"
        return
    fi
    cores=$(cores_for "$1")
    pin "$cores"
    run=(timeout $(($3 + 60)) taskset -c "$cores")
    case $2 in
        *_c) "${run[@]}" "$LOADS/lock_pairs" "$1" "$3" "$(side_in_c "$2")" 2>"$LOADS/load.log" ;;
        redis_benchmark) sample_redis_benchmark "$1" "$3" "${run[@]}" ;;
        node_*) REDIS_SOCKET=$WORK/redis/socket "${run[@]}" node "$WORK/node/locks.mjs" "${2#node_}" "$1" "$3" 2>"$LOADS/load.log" ;;
        *)
            PGOPTIONS=$(options_of "$2") "${run[@]}" pgbench -n -M prepared -D clients="$1" -D base=0 -c "$1" -j "$((2 < $1 ? 2 : $1))" -T "$3" -f "$LOADS/$2.load" >"$LOADS/load.log" 2>&1 &&
                awk '/^tps/ {print $3}' "$LOADS/load.log"
            ;;
    esac
}

# pin CORES: keeps the servers, and the processes they start from now on, on the cores.
pin() {
    local file
    for file in "$WORK/data/postmaster.pid" "$WORK/against/data/postmaster.pid" "${REDIS[@]/*/$WORK/&/pid}"; do
        [ ! -e "$file" ] || taskset -apc "$1" "$(head -n 1 "$file")" >/dev/null
    done
}

# --- Progress ------------------------------------------------------------------

# progress TEXT: on a terminal it goes when the next output comes; else one line for each group of rounds. To standard
# error, which is not part of the results.
progress() {
    local share=
    [ "$WANTED" = 0 ] || share="[$((100 * DONE / WANTED)) %] "
    [ "$DONE" -lt 10 ] || share="${share%] }, about $(((SECONDS - STARTED) * (WANTED - DONE) / DONE / 60 + 1)) min left] "
    if [ -t 2 ]; then
        printf '\r\e[K  %s%s%s%s' "$DIM" "$share" "$1" "$PLAIN" >&2
    elif [[ $1 == *"warming up" ]]; then
        printf '  %s%s\n' "$share" "${1%, warming up}" >&2
    fi
}

end_progress() { [ ! -t 2 ] || printf '\r\e[K' >&2; }
