# holds.sh: what the views cost, with ten holds and with many. To be sourced by script/bench, for script/bench --scale.

HOLD_COUNTS="10 100000" # of leases, and of markers
MARKED_TABLES=10

scale_holds() {
    local holds before=0 view
    local calls=(lease_of "SELECT blocks_key FROM interlock.lease_of('hold:1/part')"
        "held, leases" "SELECT count(*) FROM interlock.held WHERE kind = 'lease'"
        "held, markers of $MARKED_TABLES tables" "SELECT count(*) FROM interlock.held WHERE kind = 'row_marker'"
        "held, key locks" "SELECT count(*) FROM interlock.held WHERE kind = 'key_lock'"
        "held" "SELECT count(*) FROM interlock.held")
    for view in blocking contention usage audit guards; do calls+=("$view" "SELECT count(*) FROM interlock.$view"); done
    calls+=("advise()" "SELECT count(*) FROM interlock.advise()")
    local i loads=()
    for ((i = 0; i < ${#calls[@]}; i += 2)); do
        write "hold_$i" "${calls[i + 1]};"
        loads+=("${calls[i]}" "hold_$i")
    done
    for holds in $HOLD_COUNTS; do
        progress "$holds leases and markers"
        take_holds "$before" "$holds"
        before=$holds
        scale_loads holds "$holds" 1 us "${loads[@]}"
    done
    scale_table holds "Views: one client, time of a query" "leases there, and markers"
    psql -qXAt -v ON_ERROR_STOP=1 -c "SET client_min_messages = warning" -c "DROP SCHEMA held CASCADE" \
        -c "SELECT count(interlock.release_lease(key, token)) FROM interlock.leases" >/dev/null
}

# take_holds FROM TO: so many leases and markers more.
take_holds() {
    psql -qX -v ON_ERROR_STOP=1 >/dev/null 2>"$WORK/fill.log" <<SQL || { show "$WORK/fill.log" && die "could not take $2 leases and markers"; }
SELECT 1 / (count(*) = $2 - $1)::int FROM generate_series($1 + 1, $2) g, LATERAL interlock.acquire_lease('hold:' || g, '50 min') WHERE outcome = 'acquired';
SET client_min_messages = warning;
CREATE SCHEMA IF NOT EXISTS held;
DO \$\$
DECLARE
    rel text;
BEGIN
    FOR t IN 1 .. $MARKED_TABLES LOOP
        rel := format('held.t%s', t);
        IF to_regclass(rel) IS NULL THEN
            EXECUTE format('CREATE TABLE %s AS SELECT id FROM generate_series(1, %s) id', rel, 2 * ${HOLD_COUNTS##* } / $MARKED_TABLES);
            EXECUTE format('ALTER TABLE %s ADD PRIMARY KEY (id)', rel);
            PERFORM interlock.enable_marker(rel::regclass);
        END IF;
        PERFORM interlock.lock_rows(rel::regclass, array_agg(id), 'me', '50 min')
           FROM generate_series($1 / $MARKED_TABLES + 1, $2 / $MARKED_TABLES) id;
    END LOOP;
END \$\$;
SQL
    psql -qX -c "VACUUM ANALYZE" 2>/dev/null
}
