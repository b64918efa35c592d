# hot_rows.sh: adjust against other ways to take from a number that everybody takes from. To be sourced by script/bench, for
# script/bench --hot-rows.
#
# The disk counts here: fsync is on, and the sweeper folds. The samples are in hot_rows.tsv, and what the journal takes in
# journal.tsv, a line each.

HOT_SIDES=(conditional row_lock key_lock retry line redis redis_always)
declare -A HOT_NAMES=(
    [conditional]="conditional UPDATE"
    [row_lock]="SELECT FOR UPDATE, then UPDATE"
    [key_lock]="lock_key, then UPDATE"
    [retry]="update_with_retry"
    [line]="INSERT of a line with an index"
    [redis]="Redis DECR, nothing kept"
    [redis_always]="Redis DECR, appendfsync always")
# flush clients side: of one row
declare -A HOT_TARGETS=([on 64 conditional]=8 [on 64 line]=0.75 [slow 64 conditional]=25 [off 64 conditional]=3.5 [on 1 conditional]=0.9)
declare -A FLUSHES=([on]="flush on" [off]="synchronous_commit off" [slow]="flush of 2 ms more")

measure_hot_rows() {
    local seconds=1 rounds=${GIVEN_ROUNDS:-5} crowds="1 8 64" journal=${JOURNAL:-600} flush
    if [ -n "$QUICK" ]; then seconds=0.2 rounds=${GIVEN_ROUNDS:-1} crowds="1 8" journal=${JOURNAL:-2}; fi
    add_about --argjson rounds "$rounds" --argjson seconds "$seconds" '.settings += {rounds: $rounds, seconds: $seconds} | del(.settings.clients)'
    set_up_hot_rows
    heading "pg_interlock on PostgreSQL $PG_VERSION, $(nproc) cores: $rounds rounds of $seconds s"
    warn_of_load
    printf '%s\n' "flush round clients rows mechanism seconds done p50 p95 p99 wal" | tr ' ' '\t' >"$OUT/hot_rows.tsv"
    for flush in on off slow; do
        set_flush "$flush"
        for rows in 1 1000; do
            for clients in $crowds; do hot_lines "$flush" "$clients" "$rows"; done
        done
    done
    set_flush on
    watch_journal "$journal" "${crowds##* }"
    end_progress
}

set_up_hot_rows() {
    need_packages gcc libc6-dev libpq-dev libhiredis-dev
    gcc -O2 -o "$LOADS/hot_rows" -I"$("$PG_CONFIG" --includedir)" "$ROOT/bench/load/hot_rows.c" -lhiredis -lpq -lpthread
    gcc -O2 -fPIC -shared -o "$LOADS/slow_flush.so" "$ROOT/bench/load/slow_flush.c" -ldl
    chmod a+rx "$WORK" "$LOADS"
    REDIS=(redis redis_always)
    if ! { (need_packages redis-tools) && start_redis redis && start_redis redis_always --appendonly yes --appendfsync always; } >"$WORK/redis.log" 2>&1; then
        UNAVAILABLE[redis]="no Redis: $(tail -n 1 "$WORK/redis.log")"
        UNAVAILABLE[redis_always]=${UNAVAILABLE[redis]}
    fi
    start_cluster "max_connections = 100" "fsync = on" "wal_sync_method = fdatasync" "max_wal_size = 8GB" "checkpoint_timeout = 1h" "${SETTINGS[-1]}"
    psql -qX -v ON_ERROR_STOP=1 -f "$ROOT/bench/load/hot_rows.sql" >"$WORK/setup.log" 2>&1 || { show "$WORK/setup.log" && die "could not fill the tables"; }
}

# set_flush on|off|slow: restarts the server.
set_flush() {
    local preload=()
    [ "$1" != slow ] || preload=(LD_PRELOAD="$LOADS/slow_flush.so" SLOW_FLUSH=2000)
    export PGOPTIONS="-c synchronous_commit=$([ "$1" = off ] && echo off || echo on)"
    restart_server "${preload[@]}"
    [ "$1" != slow ] || grep -q slow_flush.so "/proc/$(head -n 1 "$WORK/data/postmaster.pid")/maps" || die "the server's flush is not slowed"
}

rows_in_words() { [ "$1" = 1 ] && echo "one row" || echo "1,000 rows"; }

# hot_lines FLUSH CLIENTS ROWS: all sides in turn.
hot_lines() {
    local flush=$1 clients=$2 rows=$3 side sides=(adjust) name target
    name="adjust, $(rows_in_words "$rows"), ${FLUSHES[$flush]}"
    wanted "$name, $(clients_in_words "$clients")" || return 0
    progress "$name, $(clients_in_words "$clients")"
    for side in "${HOT_SIDES[@]}"; do [ -n "${UNAVAILABLE[$side]:-}" ] || sides+=("$side$([[ $side != redis* ]] || echo "=$WORK/$side/socket")"); done
    "$LOADS/hot_rows" "$clients" "$seconds" "$rounds" "$rows" "${sides[@]}" >"$WORK/samples" 2>"$LOADS/load.log" ||
        { show "$LOADS/load.log" && die "could not measure with $(clients_in_words "$clients")"; }
    sed "s/^/$flush\t/" "$WORK/samples" >>"$OUT/hot_rows.tsv"
    end_progress
    SAMPLES=()
    for side in adjust "${HOT_SIDES[@]}"; do SAMPLES[$side]=$(awk -F '\t' -v side="$side" '$4 == side {printf "%g ", $6 / $5}' <(sort -n "$WORK/samples")); done
    heading "$name, $(clients_in_words "$clients")"
    print_side adjust adjust /s
    for side in "${HOT_SIDES[@]}"; do
        target=-
        [ "$rows" != 1 ] || [ -n "$QUICK" ] || target=${HOT_TARGETS[$flush $clients $side]:--}
        add_row "$name" "$clients" "${HOT_NAMES[$side]}" adjust "$side" "$target" /s
    done
    print_latencies
}

# print_latencies: medians of the rounds.
print_latencies() {
    local side
    printf '  %-44s%10s%10s%10s%14s\n' "microseconds of a call" p50 p95 p99 "bytes of WAL"
    for side in adjust "${HOT_SIDES[@]}"; do
        [ -n "${SAMPLES[$side]:-}" ] || continue
        # shellcheck disable=SC2046
        printf '  %-44s%10s%10s%10s%14s\n' "${HOT_NAMES[$side]:-$side}" $(for column in 7 8 9 10; do
            awk -F '\t' -v side="$side" -v column="$column" '$4 == side {print $column}' "$WORK/samples" | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'
        done)
    done
}

# watch_journal SECONDS CLIENTS: what the journal takes while all adjust one row at full rate.
watch_journal() {
    local seconds=$1 clients=$2 every started=$SECONDS query
    wanted "journal" || return 0
    every=$((seconds > 20 ? seconds / 20 : 1))
    query="SELECT pg_total_relation_size('interlock_internal.escrow_part'), count(*) FROM interlock_internal.escrow_part"
    printf 'seconds\tbytes\tparts\n' >"$OUT/journal.tsv"
    progress "the journal over $seconds s"
    "$LOADS/hot_rows" "$clients" "$seconds" 1 1 adjust >"$WORK/samples" 2>"$LOADS/load.log" &
    while kill -0 $! 2>/dev/null; do
        printf '%s\t%s\n' $((SECONDS - started)) "$(psql -qXAt -F $'\t' -c "$query")" >>"$OUT/journal.tsv"
        sleep "$every"
    done
    wait $! || { show "$LOADS/load.log" && die "could not watch the journal"; }
    end_progress
    heading "the journal, one row, flush on, $(clients_in_words "$clients"), $seconds s"
    awk -F '\t' '{printf "  %d adjustments, p50 %d, p95 %d, p99 %d microseconds\n", $6, $7, $8, $9}' "$WORK/samples"
    awk -F '\t' 'NR > 1 {if ($2 > most) most = $2; if ($3 > parts) parts = $3; last = $2}
        END {printf "  at most %.1f MB and %d parts that were not folded; %.1f MB at the end\n", most / 1e6, parts, last / 1e6}' "$OUT/journal.tsv"
}
