# instructions.sh: what a statement costs in instructions of the server, outside of the kernel. To be sourced by script/bench,
# for script/bench --instructions.
#
#   counted NAME LINE...          a load for pgbench; :id is a row that no other load has written, :n counts from 1
#   before NAME QUERY             what it needs, of the rows named id in the table of rows. Its answer is an expression of pgbench:
#                                 :proof, the token of :id, which is the :n-th row
#   cost NAME LOAD HAND WRITES    measures a function, and the same in plain SQL (- for none); WRITES is 1 for a function that writes a row.
#                                 With --against COMMIT, and the same function of that commit
#
# The server runs in valgrind's callgrind, which counts from the first mark on. Between two marks a load runs FEW times, and
# then MANY times: the difference is what MANY - FEW of them cost, and has nothing of the start of the session in it.

WARM=20
FEW=100
MANY=400
PER=1 # rows of a statement, for a count of each

declare -A BEFORE=() # load: a query
declare -A COUNTS=() # load: instructions
FIRST=0
SPREAD="1 + g * 7919 % 100000" # rows of one load are in pages far from each other: none is pruned because of another

# Nothing that comes with time may be in the counts: images of pages after a checkpoint, or what a sweep left behind.
measure_instructions() {
    need_packages valgrind gcc libc6-dev
    add_about --arg version "$(valgrind --version)" '.versions.valgrind = $version | .settings |= {pgbench, server}'
    heading "pg_interlock on PostgreSQL $PG_VERSION: instructions of the server for a statement"
    on_both start_counting
    if [ -n "$AGAINST" ]; then
        printf '  %-52s%12s%12s%12s\n' "" "this" "$AGAINST" "ratio"
    else
        printf '  %-52s%12s%12s%12s%12s\n' "" "this" "by hand" "empty f()" "an UPDATE"
    fi
    count_floors
    version_costs
    transition_costs
    marker_costs
    key_costs
    lease_costs
    idempotency_costs
    trigger_costs
    option_costs
    escrow_costs
    end_progress
}

start_counting() {
    start_cluster "${SETTINGS[@]}" "full_page_writes = off" "interlock.lease_durable_after = '1h'" "interlock.sweeper = off"
    set_up_counts
    start_under_valgrind
}

set_up_counts() {
    mkdir -p "$OUT/profiles"
    gcc -O2 -fPIC -shared -I"$(server_headers)" -o "$WORK/mark.so" "$ROOT/bench/load/mark.c"
    progress "filling tables"
    psql -qX -v ON_ERROR_STOP=1 -f "$ROOT/bench/load/bench.sql" -f "$ROOT/bench/load/plpgsql.sql" -f "$ROOT/bench/load/instructions.sql" \
        -c "CREATE FUNCTION mark() RETURNS void LANGUAGE c AS '$WORK/mark.so', 'mark'" \
        -c "VACUUM ANALYZE" >"$WORK/setup.log" 2>&1 || { show "$WORK/setup.log" && die "could not fill the tables"; }
    make_empty_functions
}

start_under_valgrind() {
    local try
    progress "starting the server in valgrind"
    stop_cluster
    as_server mkdir "$WORK/counts"
    as_server valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file="$WORK/counts/%p" --log-file="$WORK/valgrind.log" \
        "$SERVER_BIN/postgres" -D "$WORK/data" >>"$WORK/server.log" 2>&1 &
    CLUSTER_RUNS=1
    for ((try = 0; try < 600; try++)); do
        if psql -qX -c "SELECT" >/dev/null 2>&1; then break; fi
        sleep 0.1
    done
    psql -qX -v ON_ERROR_STOP=1 -c "SELECT pg_prewarm(oid) FROM pg_class WHERE relkind IN ('r', 'i')" >/dev/null ||
        { show "$WORK/server.log" && die "could not start the server in valgrind"; }
}

# --- One load ------------------------------------------------------------------

counted() {
    local name=$1
    shift
    printf '%s\n' '\if :n = :mark1 or :n = :mark2 or :n = :mark3 or :n = :mark4' "SELECT mark();" '\endif' \
        '\set n :n + 1' "\\set id ${SPREAD//g/(:first + :n)}" '\set version 1' '\set proof PROOF' "$@" >"$LOADS/$name.load"
}

# tokens EXPRESSION: a query that takes them for all rows.
tokens() {
    echo "WITH taken AS (SELECT row_number() OVER () AS n, token FROM (SELECT $1 AS token FROM rows) t)
        SELECT 'case ' || string_agg(format('when :n = %s then %s ', n, token), '' ORDER BY n) || 'end' FROM taken"
}

before() { BEFORE[$1]=$2; }

# count LOAD: fills COUNTS, or says why not in UNAVAILABLE. Both servers get the same rows.
count() {
    [ "$1" != - ] && [ -z "${COUNTS[$1]:-}${UNAVAILABLE[$1]:-}" ] || return 0
    progress "$1"
    count_here "$1" "$1"
    [ -z "$AGAINST" ] || against count_here "$1" "$1@$AGAINST"
    FIRST=$((FIRST + 1000))
    end_progress
}

# count_here LOAD SIDE: on the server that psql connects to.
count_here() {
    local load=$1 side=$2 proof
    prepare "$load" >"$WORK/proof" 2>"$WORK/load.log" || true
    proof=$(tail -n 1 "$WORK/proof")
    rm -f "$WORK"/counts/*
    [ -n "$proof" ] && run_counted "$load" "$proof" && COUNTS[$side]=$(each_count) ||
        UNAVAILABLE[$side]="failed: $(grep -m 1 -iE 'error|fatal' "$WORK/load.log" || tail -n 1 "$WORK/load.log")"
}

# prepare LOAD: prints the expression of the token.
prepare() {
    psql -qXAt -v ON_ERROR_STOP=1 -v first="$FIRST" -v last=$((FIRST + WARM + 10 + FEW + MANY + 1)) <<SQL
TRUNCATE rows;
INSERT INTO rows SELECT ${SPREAD} FROM generate_series(:first + 1, :last) g;
${BEFORE[$1]:-SELECT 0};
VACUUM plain, triggered, versioned, document, refusing, machine, marked, unswept, hand_marked, queue, hand_queue, owned, recorded, repeating, conditional, ignoring, notifying, wide, wide_short, shared, own.leases, keys, interlock.idempotency;
SQL
}

run_counted() {
    local load
    load=$(<"$LOADS/$1.load")
    printf '%s\n' "${load/PROOF/"$2"}" >"$WORK/$1.proven"
    PGOPTIONS=$(options_of "$1") timeout 120 pgbench -n -M prepared -c 1 -t $((WARM + 10 + FEW + MANY + 1)) -D n=0 -D first="$FIRST" \
        -D mark1="$WARM" -D mark2=$((WARM + 10)) -D mark3=$((WARM + 10 + FEW)) -D mark4=$((WARM + 10 + FEW + MANY)) \
        -f "$WORK/$1.proven" >"$WORK/load.log" 2>&1
}

# each_count: the third mark ended the few, the fourth the many. The last part comes when the session ends, and does not count.
each_count() {
    local few many
    few=$(cat "$WORK"/counts/*.3 | sed -n 's/^totals: //p')
    many=$(cat "$WORK"/counts/*.4 | sed -n 's/^totals: //p')
    cp "$WORK"/counts/*.4 "$OUT/profiles/$load" # of the MANY, for callgrind_annotate
    echo $(((many - few) / (MANY - FEW) / PER))
}

# --- One line ------------------------------------------------------------------

cost() {
    local name=$1 load=$2 hand=$3 writes=${4:-} why
    wanted "$name" || return 0
    count "$load"
    if [ -n "$AGAINST" ]; then
        cost_against "$name" "$load"
        return
    fi
    count "$hand"
    why=${UNAVAILABLE[$load]:-${UNAVAILABLE[$hand]:-}}
    if [ -n "$why" ]; then
        not_measured "$name" "$name" "$why"
        return
    fi
    print_cost "$name" "${COUNTS[$load]}" "${COUNTS[$hand]:-}" "${COUNTS[empty]}" "${writes:+${COUNTS[update]}}"
}

# cost_against NAME LOAD: the ratio is above 1 where the other commit takes more.
cost_against() {
    local name=$1 ours=${COUNTS[$2]:-} theirs=${COUNTS[$2@$AGAINST]:-} why=${UNAVAILABLE[$2]:-${UNAVAILABLE[$2@$AGAINST]:-}} ratio
    if [ -n "$why" ]; then
        not_measured "$name" "$AGAINST" "$why"
        return
    fi
    ratio=$(awk "BEGIN {printf \"%.3f\", $theirs / $ours}")
    printf '  %-52s%12s%12s%12s\n' "$name" "$ours" "$theirs" "$ratio"
    jq -cn --arg statement "$name" --arg against "$AGAINST" --argjson ours "$ours" --argjson theirs "$theirs" --argjson ratio "$ratio" \
        '{statement: $statement, instructions: $ours, against: $against, theirs: $theirs, ratio: $ratio}' >>"$WORK/instructions"
}

# print_cost NAME COUNT HAND EMPTY UPDATE: a line, and one for the file of results. What is not there is empty.
print_cost() {
    printf '  %-52s%12s%12s%12s%12s\n' "$@"
    jq -cn --args '$ARGS.positional | {statement: .[0]} + ([["instructions", .[1]], ["by_hand", .[2]], ["empty_function", .[3]], ["plain_update", .[4]]]
        | map(select(.[1] != "") | {(.[0]): .[1] | tonumber}) | add)' "$@" >>"$WORK/instructions"
}

count_floors() {
    counted empty "SELECT empty(:id);"
    counted update "UPDATE plain SET a = a + 1 WHERE id = :id;"
    count empty
    count update
    if [ -n "$AGAINST" ]; then
        cost_against "SELECT of an empty function in C" empty
        cost_against "UPDATE of a table without triggers" update
        return
    fi
    [ -n "${COUNTS[empty]:-}" ] && [ -n "${COUNTS[update]:-}" ] || die "could not count: ${UNAVAILABLE[empty]:-}${UNAVAILABLE[update]:-}"
    print_cost "SELECT of an empty function in C" "${COUNTS[empty]}" "" "" ""
    print_cost "UPDATE of a table without triggers" "${COUNTS[update]}" "" "" ""
}

# --- Versions and transitions ----------------------------------------------------

version_costs() {
    local values="a = 1, b = 'y', c = 2.5" changes='{"a": 1, "b": "y", "c": 2.5}'
    local hand="UPDATE plain SET $values, version = version + 1 WHERE id = :id AND version = :version RETURNING version;"
    counted versioned_update "SELECT interlock.versioned_update('versioned', :id, :version, '$changes');"
    counted hand_update "$hand"
    counted try_update "SELECT (interlock.try_versioned_update('versioned', :id, :version, '$changes')).version;"
    counted try_update_from "SELECT version FROM interlock.try_versioned_update('versioned', :id, :version, '$changes');"
    counted conflict '\set version 7' "SELECT outcome, version, current FROM interlock.try_versioned_update('versioned', :id, :version, '$changes');"
    counted hand_conflict '\set version 7' "$hand" "SELECT * FROM plain WHERE id = :id;"
    counted versioned_delete "SELECT interlock.versioned_delete('versioned', :id, :version);"
    counted hand_delete "DELETE FROM plain WHERE id = :id AND version = :version;"
    counted assert_version "SELECT interlock.assert_version('versioned', :id, :version);"
    counted hand_locked_read "SELECT 1 / (version = :version)::int FROM plain WHERE id = :id FOR NO KEY UPDATE;"
    counted versioned_upsert "SELECT interlock.versioned_upsert('versioned', 10000000 + :n, NULL::bigint, '$changes');"
    counted hand_insert "INSERT INTO plain (id, a, b, c) VALUES (10000000 + :n, 1, 'y', 2.5) ON CONFLICT (id) DO NOTHING RETURNING version;"
    cost "versioned_update, three columns" versioned_update hand_update 1
    cost "try_versioned_update, three columns, one column of it" try_update hand_update 1
    cost "try_versioned_update, three columns, in FROM" try_update_from hand_update 1
    cost "try_versioned_update in conflict, in FROM" conflict hand_conflict
    cost "versioned_delete" versioned_delete hand_delete 1
    cost "versioned_upsert of a new row, three columns" versioned_upsert hand_insert 1
    cost "assert_version" assert_version hand_locked_read
    batch_cost
}

# A thousand rows are one statement here: fewer statements, and a thousandth of the count.
batch_cost() {
    local WARM=6 FEW=1 MANY=3 PER=1000 name="versioned_update_many of 1,000, a row" updates="(SELECT updates FROM batches WHERE id = :n)::jsonb"
    wanted "$name" || return 0
    counted batch "SELECT 1 / (count(*) = 1000)::int FROM interlock.versioned_update_many('batch', $updates) WHERE outcome = 'updated';"
    counted hand_batch "UPDATE hand_batch b SET a = c.a, b = c.b, c = c.c, version = b.version + 1
        FROM jsonb_to_recordset($updates) u(key int, version bigint, changes jsonb), jsonb_to_record(u.changes) c(a int, b text, c numeric)
        WHERE b.id = u.key AND b.version = u.version RETURNING b.id, b.version;"
    sed -i ':a;N;$!ba;s/\n  */ /g' "$LOADS/hand_batch.load"
    cost "$name" batch hand_batch 1
}

transition_costs() {
    counted try_transition "SELECT (interlock.try_transition('machine', :id, 'a', 'b')).outcome;"
    counted try_transition_from "SELECT outcome FROM interlock.try_transition('machine', :id, 'a', 'b');"
    counted transition "SELECT interlock.transition('machine', :id, 'a', 'b');"
    counted hand_transition "UPDATE plain SET status = 'b' WHERE id = :id AND status = 'a';"
    cost "try_transition, one column of it" try_transition hand_transition 1
    cost "try_transition, in FROM" try_transition_from hand_transition 1
    cost "transition" transition hand_transition 1
}

# --- Markers -------------------------------------------------------------------

marker_costs() {
    local marks="lock_status = 1, lock_by = 'me', lock_time = now(), lock_until = now() + '5 min'"
    local clears="lock_status = 0, lock_by = NULL, lock_time = NULL, lock_until = NULL"
    local held="id = :id AND lock_by = 'me' AND lock_until > now()" load
    counted lock_row "SELECT (interlock.lock_row('marked', :id, 'me')).locked;"
    counted lock_row_from "SELECT locked FROM interlock.lock_row('marked', :id, 'me');"
    counted lock_unswept "SELECT (interlock.lock_row('unswept', :id, 'me')).locked;"
    counted lock_refused "SELECT (interlock.lock_row('marked', :id, 'you')).locked;"
    counted save_row "SELECT interlock.save_row('marked', :id, 'me', '{\"b\": \"y\"}');"
    counted save_unswept "SELECT interlock.save_row('unswept', :id, 'me', '{\"b\": \"y\"}');"
    counted unlock_row "SELECT interlock.unlock_row('marked', :id, 'me');"
    counted touch_row "SELECT interlock.touch_row('marked', :id, 'me');"
    counted force_unlock "SELECT interlock.force_unlock_row('marked', :id, 'because');"
    counted hand_lock "UPDATE hand_marked SET $marks WHERE id = :id AND (lock_status = 0 OR lock_until <= now());"
    counted hand_refused "UPDATE hand_marked SET $marks WHERE id = :id AND (lock_status = 0 OR lock_until <= now());"
    counted hand_save "UPDATE hand_marked SET b = 'y', $clears WHERE $held;"
    counted hand_unlock "UPDATE hand_marked SET $clears WHERE $held;"
    counted hand_touch "UPDATE hand_marked SET lock_until = now() + '5 min' WHERE $held RETURNING lock_until;"
    counted bare_lock "UPDATE plain SET lock_status = 1, lock_by = 'me', lock_time = now() WHERE id = :id AND lock_status = 0;"
    counted bare_save "UPDATE plain SET b = 'y', lock_status = 0, lock_by = NULL, lock_time = NULL WHERE id = :id AND lock_by = 'me';"
    for load in lock_refused save_row unlock_row touch_row force_unlock; do
        before $load "SELECT count(interlock.lock_row('marked', id, 'me')) FROM rows"
    done
    before save_unswept "SELECT count(interlock.lock_row('unswept', id, 'me')) FROM rows"
    for load in hand_refused hand_save hand_unlock hand_touch; do
        before $load "UPDATE hand_marked SET $marks WHERE id IN (SELECT id FROM rows); SELECT 0"
    done
    before bare_save "UPDATE plain SET lock_status = 1, lock_by = 'me', lock_time = now() WHERE id IN (SELECT id FROM rows); SELECT 0"
    cost "lock_row, one column of it" lock_row hand_lock 1
    cost "lock_row, in FROM" lock_row_from hand_lock 1
    cost "lock_row, held by another" lock_refused hand_refused
    cost "save_row" save_row hand_save 1
    cost "unlock_row" unlock_row hand_unlock 1
    cost "touch_row" touch_row hand_touch 1
    cost "force_unlock_row" force_unlock - 1
    local rows claim="FROM interlock.claim_rows('queue', 'me', ROWS, '{\"kind\": \"mail\"}', 'place', '1 microsecond')"
    local hand_claim="UPDATE hand_queue q SET ${marks/5 min/1 microsecond} FROM (SELECT id FROM hand_queue
        WHERE kind = 'mail' AND (lock_status = 0 OR lock_until <= now()) ORDER BY place LIMIT ROWS FOR UPDATE SKIP LOCKED) n WHERE q.id = n.id RETURNING q.*"
    for rows in 1 10; do
        counted "claim_$rows" "SELECT current, expires_at ${claim/ROWS/$rows};"
        counted "hand_claim_$rows" "${hand_claim/ROWS/$rows};"
        cost "claim_rows, $rows of 10,000" "claim_$rows" "hand_claim_$rows"
    done
    cost "lock_row, no index; by hand no deadline either" lock_unswept bare_lock 1
    cost "save_row, no index; by hand no deadline either" save_unswept bare_save 1
}

# --- Keys ----------------------------------------------------------------------

key_costs() {
    local hash="hashtextextended(:id, 0)" other='\set other :id + 50000'
    local ten="ARRAY[:id, :id + 11, :id + 22, :id + 33, :id + 44, :id + 55, :id + 66, :id + 77, :id + 88, :id + 99]"
    # With a second column: alone in its statement, lock_key warns that the lock is already released, which costs more than the lock.
    counted lock_key "SELECT interlock.lock_key(:id), 0;"
    counted hand_key "SELECT pg_try_advisory_xact_lock($hash), 0;"
    counted lock_keys "$other" "SELECT interlock.lock_keys(ARRAY[:id, :other]), 0;"
    counted try_lock_keys "$other" "SELECT interlock.try_lock_keys(ARRAY[:id, :other]), 0;"
    counted hand_keys "$other" "SELECT pg_advisory_xact_lock($hash), pg_advisory_xact_lock(hashtextextended(:other, 0));"
    counted select_for_update "SELECT key FROM interlock.select_for_update('plain', $ten);"
    counted hand_rows "SELECT id FROM plain WHERE id = ANY($ten) ORDER BY id FOR UPDATE;"
    counted applock "SELECT interlock.getapplock(:id, 'Exclusive'), 0;"
    counted applock_pair "SELECT interlock.getapplock(:id, 'Exclusive', 'Session');" "SELECT interlock.releaseapplock(:id, 'Session');"
    counted hand_pair "SELECT pg_advisory_lock($hash);" "SELECT pg_advisory_unlock($hash);"
    cost "lock_key" lock_key hand_key
    cost "lock_keys, two keys" lock_keys hand_keys
    cost "try_lock_keys, two keys" try_lock_keys hand_keys
    cost "select_for_update, ten rows" select_for_update hand_rows
    cost "getapplock" applock hand_key
    cost "getapplock + releaseapplock, of a session" applock_pair hand_pair
}

# --- Leases --------------------------------------------------------------------

# By hand a lease is a row with an expiry and a token.
lease_costs() {
    local other='\set other :id + 500000' load
    local take="(key, nextval('own.tokens'), NULL, clock_timestamp() + '10 min')"
    local conflict="ON CONFLICT (key) DO UPDATE SET token = excluded.token, holder = excluded.holder, expires = excluded.expires
        WHERE l.expires <= clock_timestamp() RETURNING token"
    conflict=$(tr -s '\n ' ' ' <<<"$conflict")
    counted acquire_lease "SELECT (interlock.acquire_lease(:id, '30 s')).token;"
    counted hand_acquire "INSERT INTO own.leases AS l VALUES ${take/key/:id} $conflict;"
    counted acquire_leases "$other" "SELECT (interlock.acquire_leases(ARRAY[:id, :other], '30 s')).tokens;"
    counted hand_two "$other" "INSERT INTO own.leases AS l VALUES ${take/key/:id}, ${take/key/:other} $conflict;"
    counted renew_lease "SELECT interlock.renew_lease(:id, :proof);"
    counted hand_renew "UPDATE own.leases SET expires = clock_timestamp() + '10 min' WHERE key = :id AND token = :proof AND expires > clock_timestamp() RETURNING expires;"
    counted release_lease "SELECT interlock.release_lease(:id, :proof);"
    counted hand_release "DELETE FROM own.leases WHERE key = :id AND token = :proof;"
    counted assert_lease "SELECT interlock.assert_lease(:id, :proof);"
    counted hand_assert "SELECT FROM own.leases WHERE key = :id AND token = :proof AND expires > clock_timestamp() FOR SHARE;"
    for load in renew_lease release_lease assert_lease; do
        before $load "$(tokens "(interlock.acquire_lease(id::text, '10 min')).token")"
    done
    for load in hand_renew hand_release hand_assert; do
        before $load "INSERT INTO own.leases SELECT id, row_number() OVER (), NULL, clock_timestamp() + '10 min' FROM rows; SELECT ':n'"
    done
    cost "acquire_lease, one column of it" acquire_lease hand_acquire
    cost "acquire_leases of two, one column of it" acquire_leases hand_two
    cost "renew_lease" renew_lease hand_renew
    cost "release_lease" release_lease hand_release
    cost "assert_lease" assert_lease hand_assert
}

# --- Idempotency ---------------------------------------------------------------

# The body of the request is none that the plan knows: what is computed of a constant is computed once.
idempotency_costs() {
    local first="'{\"amount\": 10}'" body="('{\"amount\": ' || :id::text || '}')" answer="'{\"a\": 1}'" load scope
    local row="'pending', sha256(convert_to($body, 'UTF8')), NULL, NULL, now()" first_row="'pending', sha256($first), NULL, NULL, now()"
    counted claim "SELECT (interlock.idempotency_claim('pay', :id, $body::jsonb)).token;"
    counted claim_from "SELECT token FROM interlock.idempotency_claim('pay', :id, $body::jsonb);"
    counted hand_claim "INSERT INTO keys VALUES ('pay', :id, $row) ON CONFLICT DO NOTHING RETURNING key;"
    counted replay '\set id 10' "SELECT outcome, response FROM interlock.idempotency_claim('pay', 'done', $body::jsonb);"
    counted hand_replay '\set id 10' "INSERT INTO keys VALUES ('pay', 'done', $row) ON CONFLICT DO NOTHING RETURNING key;" \
        "SELECT status, response FROM keys WHERE scope = 'pay' AND key = 'done';"
    counted complete "SELECT interlock.idempotency_complete('pay', :id, :proof, $answer);"
    counted hand_complete "UPDATE keys SET status = 'completed', response = $answer WHERE scope = 'pay' AND key = :id;"
    counted fail "SELECT interlock.idempotency_fail('pay', :id, :proof, $answer);"
    counted hand_fail "UPDATE keys SET status = 'failed', response = $answer WHERE scope = 'pay' AND key = :id;"
    counted checkpoint "SELECT interlock.idempotency_checkpoint('import', :id, :proof, 'half', $answer);"
    counted hand_checkpoint "UPDATE keys SET response = $answer, created = now() WHERE scope = 'pay' AND key = :id;"
    for load in complete fail checkpoint; do
        scope=$([ $load = checkpoint ] && echo import || echo pay)
        before $load "$(tokens "(interlock.idempotency_claim('$scope', id::text, $first)).token")"
    done
    before replay "SELECT interlock.idempotency_complete('pay', 'done', (interlock.idempotency_claim('pay', 'done', $first)).token, $answer); SELECT 0"
    for load in hand_complete hand_fail hand_checkpoint; do
        before $load "INSERT INTO keys SELECT 'pay', id, $first_row FROM rows; SELECT 0"
    done
    before hand_replay "INSERT INTO keys VALUES ('pay', 'done', $first_row); SELECT 0"
    cost "idempotency_claim, one column of it" claim hand_claim 1
    cost "idempotency_claim, in FROM" claim_from hand_claim 1
    cost "idempotency_claim of what is done, in FROM" replay hand_replay
    cost "idempotency_complete" complete hand_complete 1
    cost "idempotency_fail" fail hand_fail 1
    cost "idempotency_checkpoint" checkpoint hand_checkpoint 1
}

# --- Triggers ------------------------------------------------------------------

# By hand is the same UPDATE of a table without the trigger.
trigger_costs() {
    local table
    for table in triggered versioned marked owned recorded; do counted update_$table "UPDATE $table SET a = a + 1 WHERE id = :id;"; done
    counted update_machine "UPDATE machine SET status = 'b' WHERE id = :id;"
    counted update_status "UPDATE plain SET status = 'b' WHERE id = :id;"
    counted suppressed "BEGIN;" "SELECT interlock.suppress_history('recorded');" "UPDATE recorded SET a = a + 1 WHERE id = :id;" "COMMIT;"
    counted hand_block "BEGIN;" "SELECT empty('recorded');" "UPDATE plain SET a = a + 1 WHERE id = :id;" "COMMIT;"
    cost "UPDATE with an empty trigger in C" update_triggered update
    cost "UPDATE with the version trigger" update_versioned update
    for table in plain versioned refusing; do
        counted compared_$table "UPDATE $table SET a = a + 1, version = version + 1 WHERE id = :id AND version = :version;"
    done
    cost "UPDATE ... AND version, blind updates allowed" compared_versioned compared_plain
    cost "UPDATE ... AND version, blind updates refused" compared_refusing compared_plain
    cost "UPDATE with the transition trigger" update_machine update_status
    cost "UPDATE with the marker trigger" update_marked update
    cost "UPDATE with owned columns" update_owned update
    cost "UPDATE with history" update_recorded update
    cost "BEGIN, suppress_history, UPDATE, COMMIT" suppressed hand_block
}

# --- Options ---------------------------------------------------------------------

# By hand is the same statement where the option is off.
option_costs() {
    local table lines="VALUES (:id + 1000000 * (:n + 1), :id, 'x');"
    for table in machine repeating conditional; do counted state_$table "UPDATE $table SET status = 'b' WHERE id = :id AND status = 'a';"; done
    for table in recorded ignoring notifying wide wide_short; do counted entry_$table "UPDATE $table SET a = a + 1 WHERE id = :id;"; done
    for table in versioned shared; do counted share_$table "UPDATE $table SET a = a + 1 WHERE id = :id AND version = :version;"; done
    for table in line unguarded_line; do counted insert_$table "INSERT INTO $table $lines"; done
    counted try_machine "SELECT (interlock.try_transition('machine', :id, 'a', 'b')).outcome;"
    counted try_match "SELECT (interlock.try_transition('machine', :id, 'a', 'b', match => '{\"b\": \"x\"}')).outcome;"
    cost "transition of a table, on_repeat => 'reject'" state_repeating state_machine
    cost "transition of a table, a guard in SQL" state_conditional state_machine
    cost "try_transition, match of a column" try_match try_machine
    cost "history of an ignored column" entry_ignoring entry_recorded
    cost "history, notify => 'full'" entry_notifying entry_recorded
    cost "history of 40 columns, whole_every => 16" entry_wide_short entry_wide
    cost "shared column, blind updates refused" share_shared share_versioned
    cost "INSERT of a guarded child" insert_line insert_unguarded_line
    uncounted_costs
}

# By hand is the same statement in a session that counts no contention.
uncounted_costs() {
    local load
    for load in lock_key lock_keys applock acquire_lease acquire_leases renew_lease assert_lease claim try_machine update_versioned; do
        wanted "$load, contention counted" || continue
        cp "$LOADS/$load.load" "$LOADS/uncounted_$load.load"
        [ -z "${BEFORE[$load]:-}" ] || before uncounted_$load "${BEFORE[$load]}"
        cost "$load, contention counted" $load uncounted_$load
    done
}

# --- Escrow counters -------------------------------------------------------------

# All of one row, whose counter is in memory after the first.
escrow_costs() {
    counted adjust "SELECT interlock.adjust('stocked', 1, 'stock', -1);"
    counted hand_take "UPDATE hand_stocked SET stock = stock - 1 WHERE id = 1 AND stock >= 1;"
    counted hand_part "INSERT INTO part VALUES (1, -1);"
    cost "adjust, and a conditional UPDATE" adjust hand_take
    cost "adjust, and an INSERT of a line" adjust hand_part
}
