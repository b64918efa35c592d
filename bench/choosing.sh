# choosing.sh: what each mechanism gets done while clients conflict. To be sourced by script/bench, for script/bench --choosing.
#
# The samples are in choosing.tsv, a line each. bench/choosing.pl makes the charts and tables of docs/internals/performance.md
# from those that are kept next to it.

measure_choosing() {
    local clients seconds=0.7 rounds=${GIVEN_ROUNDS:-3} crowds="8 64" rows=1,10,100,1000,10000 thinks=0,5,50
    local file=$OUT/choosing.tsv
    if [ -n "$QUICK" ]; then
        seconds=0.2 rounds=${GIVEN_ROUNDS:-1} crowds=4 rows=1,10 thinks=0,1
    fi
    add_about --argjson rounds "$rounds" --argjson seconds "$seconds" '.settings += {rounds: $rounds, seconds: $seconds} | del(.settings.clients)'
    need_packages gcc libc6-dev libpq-dev
    gcc -O2 -o "$LOADS/choosing" -I"$("$PG_CONFIG" --includedir)" "$ROOT/bench/load/choosing.c" -lpq -lpthread
    start_cluster "${SETTINGS[@]}" "max_connections = 100" "interlock.sweeper = off"
    heading "pg_interlock on PostgreSQL $PG_VERSION, $(nproc) cores: $rounds rounds of $seconds s"
    warn_of_load
    psql -qX -v ON_ERROR_STOP=1 -f "$ROOT/bench/load/choosing.sql" >"$WORK/setup.log" 2>&1 || { show "$WORK/setup.log" && die "could not fill the tables"; }
    {
        echo "# pg_interlock $(sed -n "s/^default_version *= *'\(.*\)'/\1/p" "$ROOT/$EXTENSION.control"), PostgreSQL $PG_VERSION, $(nproc) cores, $rounds rounds of $seconds s"
        printf '%s\t' round clients rows think mechanism seconds done tries p50 p95
        echo p99
    } >"$file"
    for clients in 1 $crowds; do
        progress "$(clients_in_words "$clients")"
        "$LOADS/choosing" "$clients" "$seconds" "$rounds" "$([ "$clients" = 1 ] && echo "1,${rows##*,}" || echo $rows)" "$thinks" >>"$file" 2>"$LOADS/load.log" ||
            { show "$LOADS/load.log" && die "could not measure with $(clients_in_words "$clients")"; }
    done
    end_progress
}
