# lines.sh: the functions against plain SQL and against PL/pgSQL. To be sourced by script/bench.

set_up_lines() {
    progress "filling tables"
    on_both fill_line_tables
    make_empty_functions
    end_progress
    write_trigger_loads
    write_version_loads
    write_batch_loads
    write_import_loads
    write_marker_loads
    write_claim_loads
    write_lease_loads
    write_key_loads
    write_idempotency_loads
    write hand_transition "UPDATE plain SET status = 'a' WHERE id = :id AND status = 'a';"
    write call_transition "SELECT (interlock.try_transition('machine', :id, 'a', 'a')).outcome;"
    write own_transition "SELECT own.try_transition(:id, 'a', 'a');"
}

fill_line_tables() {
    psql -qX -v ON_ERROR_STOP=1 -f "$ROOT/bench/load/bench.sql" -f "$ROOT/bench/load/plpgsql.sql" >"$WORK/setup.log" 2>&1 ||
        { show "$WORK/setup.log" && die "could not fill the tables"; }
}

lines() {
    line "$1" "UPDATE with the version trigger" update_versioned \
        "UPDATE with an empty trigger in C" update_triggered 0.95 \
        "UPDATE without a trigger" update_plain - "a trigger in PL/pgSQL" update_own -
    line "$1" "UPDATE ... AND version, blind updates refused" compared_refusing \
        "the same, blind updates allowed" compared_versioned - "the same without a trigger" compared_plain -
    line "$1" "UPDATE with owned columns" update_owned \
        "UPDATE without a trigger" update_plain - "a trigger in PL/pgSQL" update_own_owned -
    line "$1" "UPDATE with history" update_recorded \
        "UPDATE without a trigger" update_plain - "a trigger in PL/pgSQL" update_own_recorded -
    line "$1" "versioned_update, three columns" call_update \
        "the same UPDATE ... AND version" hand_update 1.0 \
        "PL/pgSQL for this table" own_update - "PL/pgSQL for any table" own_update_any -
    line "$1" "try_versioned_update, three columns" call_try_update \
        "the same UPDATE ... AND version" hand_update - "versioned_update" call_update -
    line "$1" "versioned_update_many, 1,000 rows" call_batch \
        "1,000 single calls in one transaction" call_singles 5 \
        "1,000 single calls in one statement" call_singles_inside - \
        "one UPDATE of all by hand" hand_batch - "PL/pgSQL, one UPDATE" own_batch -
    line "$1" "versioned_update of values that are stored" call_same \
        "UPDATE ... WHERE ... IS DISTINCT FROM" hand_same 0.9
    line "$1" "versioned_update_many of 1,000 rows that are stored" call_same_batch \
        "one UPDATE of all WHERE ... IS DISTINCT FROM" hand_same_batch 0.9
    line "$1" "lock_row + save_row" call_marked_lock \
        "two UPDATEs by hand, no deadline" hand_lock 0.8 \
        "two UPDATEs by hand, deadline and index" hand_deadline_lock 0.95 \
        "PL/pgSQL, with a deadline, enforced" own_lock -
    line "$1" "lock_row + save_row, sweep_index => false" call_unswept_lock \
        "two UPDATEs by hand, no deadline" hand_lock 0.95
    line "$1" "claim_rows, one row" call_claim \
        "UPDATE ... SKIP LOCKED by hand, deadline and index" hand_claim 0.85
    line "$1" "claim_rows, ten rows" call_claim_ten \
        "UPDATE ... SKIP LOCKED by hand, deadline and index" hand_claim_ten 0.9
    line "$1" "claim_rows + save_row" call_claim_save \
        "two UPDATEs by hand, the first with SKIP LOCKED" hand_claim_save 0.8
    line "$1" "acquire_lease + release_lease" lease \
        "two empty C functions" empty 0.8 "PL/pgSQL on a table" own_lease -
    line "$1" "acquire_lease + release_lease, C client" lease_c \
        "Redis SET NX EX + Lua delete, C client" redis_c 0.9 "the same, Redis with appendonly" redis-aof_c 1.0 \
        "two empty C functions, C client" empty_c 0.8 "redis-benchmark, SET NX EX + EVALSHA" redis_benchmark -
    line "$1" "acquire_lease + release_lease by function calls" call_c \
        "Redis SET NX EX + Lua delete, C client" redis_c 1.1 "the same, Redis with appendonly" redis-aof_c 1.1 \
        "the same by prepared statements" lease_c -
    line "$1" "lock_key" key_lock \
        "pg_try_advisory_xact_lock of the same text" text_lock 0.9 \
        "pg_try_advisory_xact_lock of a number" advisory_lock - "PL/pgSQL on an advisory lock" own_key -
    line "$1" "lock_key, counted" key_lock "the same, not counted" uncounted_key_lock 0.95
    line "$1" "lock_keys, two keys" key_locks \
        "two pg_advisory_xact_lock" advisory_locks - "PL/pgSQL in order of the hash" own_keys -
    line "$1" "select_for_update, ten rows" select_for_update \
        "SELECT ... ORDER BY ... FOR UPDATE" hand_rows - "PL/pgSQL" own_rows -
    line "$1" "idempotency claim + complete" call_idempotency \
        "INSERT ON CONFLICT + UPDATE" hand_idempotency 0.85 \
        "the same with token, deadline and expiry" full_idempotency 0.95 "PL/pgSQL with hash, token, takeover" own_idempotency -
    line "$1" "try_transition" call_transition \
        "UPDATE ... AND status" hand_transition - "PL/pgSQL, enforced by a trigger" own_transition -
}

# control_line CLIENTS: what both commits have in common. Its ratio shows the noise.
control_line() { TARGETS= line "$1" "UPDATE without a trigger, the same for both" update_plain; }

write_trigger_loads() {
    local table
    write update_plain "UPDATE plain SET a = a + 1 WHERE id = :id;"
    write update_triggered "UPDATE triggered SET a = a + 1 WHERE id = :id;"
    write update_versioned "UPDATE versioned SET a = a + 1 WHERE id = :id;"
    for table in plain versioned refusing; do
        write compared_$table "SELECT version FROM $table WHERE id = :id \\gset" \
            "UPDATE $table SET a = a + 1, version = version + 1 WHERE id = :id AND version = :version;"
    done
    write update_own "UPDATE own.versioned SET a = a + 1 WHERE id = :id;"
    write update_owned "UPDATE owned SET a = a + 1 WHERE id = :id;"
    write update_own_owned "UPDATE own.owned SET a = a + 1 WHERE id = :id;"
    write update_recorded "UPDATE recorded SET a = a + 1 WHERE id = :id;"
    write update_own_recorded "UPDATE own.recorded SET a = a + 1 WHERE id = :id;"
}

# All sides read the version first, as a client does.
write_version_loads() {
    local values="a = 1, b = 'y', c = 2.5" changes='{"a": 1, "b": "y", "c": 2.5}'
    write hand_update "SELECT version FROM plain WHERE id = :id \\gset" \
        "UPDATE plain SET $values, version = version + 1 WHERE id = :id AND version = :version RETURNING version;"
    write call_update "SELECT version FROM versioned WHERE id = :id \\gset" \
        "SELECT interlock.versioned_update('versioned', :id, :version, '$changes');"
    write call_try_update "SELECT version FROM versioned WHERE id = :id \\gset" \
        "SELECT (interlock.try_versioned_update('versioned', :id, :version, '$changes')).version;"
    write own_update "SELECT version FROM own.versioned WHERE id = :id \\gset" \
        "SELECT own.try_versioned_update(:id, :version, 1, 'y', 2.5);"
    write own_update_any "SELECT version FROM own.versioned WHERE id = :id \\gset" \
        "SELECT own.try_versioned_update('own.versioned', :id, :version, '$changes');"
}

# A thousand rows of each client's own, so that nothing conflicts; a division by zero tells of rows that were not updated.
# The array of updates is read from text in the statement, and that time counts, as if the client had sent it.
write_batch_loads() {
    LONG+=([call_batch]=1 [call_singles]=1 [call_singles_inside]=1 [own_batch]=1 [hand_batch]=1)
    local values="a = 1, b = 'y', c = 2.5" changes='{"a": 1, "b": "y", "c": 2.5}' first='\set first :client_id * 1000 + 1'
    local rows="generate_series(:first, :first + 999) g" updates i
    updates="(SELECT replace(updates, '%', (:version)::text)::jsonb FROM sent WHERE client = :client_id)"
    write call_batch "$first" "SELECT version FROM batch WHERE id = :first \\gset" \
        "SELECT 1 / (count(*) = 1000)::int FROM interlock.versioned_update_many('batch', $updates) WHERE outcome = 'updated';"
    write call_singles "$first" "SELECT version FROM batch WHERE id = :first \\gset" "BEGIN;"
    for ((i = 0; i < 1000; i++)); do
        echo "SELECT interlock.versioned_update('batch', :first + $i, :version, '$changes');"
    done >>"$LOADS/call_singles.load"
    echo "COMMIT;" >>"$LOADS/call_singles.load"
    write call_singles_inside "$first" "SELECT version FROM batch WHERE id = :first \\gset" \
        "SELECT count(interlock.versioned_update('batch', g, :version, '$changes')) FROM $rows;"
    write own_batch "$first" "SELECT version FROM own.batch WHERE id = :first \\gset" \
        "SELECT 1 / (count(*) = 1000)::int FROM own.versioned_update_many($updates) WHERE outcome = 'updated';"
    write hand_batch "$first" "SELECT version FROM hand_batch WHERE id = :first \\gset" \
        "UPDATE hand_batch b SET $values, version = b.version + 1 FROM $rows WHERE b.id = g AND b.version = :version;"
}

# Rows that are imported again. Nothing is written, so all clients may have the same rows. Both sides read the same text.
write_import_loads() {
    LONG+=([call_same_batch]=1 [hand_same_batch]=1)
    local id='\set id random(1, 64000)' client='\set client random(0, 62)'
    local updates="(SELECT replace(updates, '%', '1')::jsonb FROM sent WHERE client = :client)"
    write call_same "$id" "SELECT interlock.versioned_update('kept', :id, 1, '{\"a\": 1, \"b\": \"y\", \"c\": 2.5}');"
    write hand_same "$id" "UPDATE hand_kept SET a = 1, b = 'y', c = 2.5, version = version + 1
WHERE id = :id AND (a, b, c) IS DISTINCT FROM (1, 'y', 2.5) RETURNING version;"
    write call_same_batch "$client" \
        "SELECT 1 / (count(*) = 1000)::int FROM interlock.versioned_update_many('kept', $updates) WHERE outcome = 'unchanged';"
    write hand_same_batch "$client" "UPDATE hand_kept k SET a = r.a, b = r.b, c = r.c, version = k.version + 1
        FROM jsonb_array_elements($updates) u, jsonb_to_record(u->'changes') r (a int, b text, c numeric)
        WHERE k.id = (u->>'key')::int AND (k.a, k.b, k.c) IS DISTINCT FROM (r.a, r.b, r.c);"
}

# The first marker by hand has neither a deadline nor anything that keeps others from writing. The second has a deadline,
# lets others take over a row whose time is up, and has the index that finds such rows.
write_marker_loads() {
    local table held="id = :id AND lock_by = 'me'"
    write hand_lock \
        "UPDATE plain SET lock_status = 1, lock_by = 'me', lock_time = now() WHERE id = :id AND lock_status = 0 RETURNING true AS ok \\gset" "\\if :ok" \
        "UPDATE plain SET b = 'y', lock_status = 0, lock_by = NULL, lock_time = NULL WHERE $held;" "\\endif"
    write hand_deadline_lock \
        "UPDATE hand_marked SET lock_status = 1, lock_by = 'me', lock_time = now(), lock_until = now() + '5 min' WHERE id = :id AND (lock_status = 0 OR lock_until <= now()) RETURNING true AS ok \\gset" "\\if :ok" \
        "UPDATE hand_marked SET b = 'y', lock_status = 0, lock_by = NULL, lock_time = NULL, lock_until = NULL WHERE $held AND lock_until > now();" "\\endif"
    for table in marked unswept; do
        write call_${table}_lock "SELECT (interlock.lock_row('$table', :id, 'me')).locked AS ok \\gset" "\\if :ok" \
            "SELECT interlock.save_row('$table', :id, 'me', '{\"b\": \"y\"}');" "\\endif"
    done
    write own_lock "SELECT own.lock_row(:id, 'me') AS ok \\gset" "\\if :ok" "SELECT own.save_row(:id, 'me', 'y');" "\\endif"
}

# Claims alone lapse at once, so that the next one finds the same rows free. A saved job goes to another place of the queue.
write_claim_loads() {
    local rows name place='\set place random(1, 1000000)' job="kind = 'mail' AND (lock_status = 0 OR lock_until <= now())"
    local hand="UPDATE hand_queue q SET lock_status = 1, lock_by = 'me', lock_time = now(), lock_until = now() + 'TTL'
        FROM (SELECT id FROM hand_queue WHERE $job ORDER BY place LIMIT ROWS FOR UPDATE SKIP LOCKED) n WHERE q.id = n.id RETURNING q.*"
    local call="FROM interlock.claim_rows('queue', 'me', ROWS, '{\"kind\": \"mail\"}', 'place', 'TTL')"
    hand=${hand//$'\n'/} # one line for pgbench
    for rows in 1 10; do
        name=$([ "$rows" = 1 ] || echo _ten)
        write "hand_claim$name" "$(of_rows "$hand" "$rows" '1 microsecond');"
        write "call_claim$name" "$(of_rows "SELECT current, expires_at $call" "$rows" '1 microsecond');"
    done
    write hand_claim_save "$place" "$(of_rows "$hand" 1 '5 min') \\gset" \
        "UPDATE hand_queue SET place = :place, lock_status = 0, lock_by = NULL, lock_time = NULL, lock_until = NULL WHERE id = :id AND lock_by = 'me' AND lock_until > now();"
    write call_claim_save "$place" "$(of_rows "SELECT (current->>'id')::int AS id $call" 1 '5 min') \\gset" \
        "SELECT interlock.save_row('queue', :id, 'me', jsonb_build_object('place', :place::int));"
}

of_rows() { sed "s/ROWS/$2/; s/TTL/$3/" <<<"$1"; }

write_lease_loads() {
    local key='\set key (:base + :client_id) * 1000000 + :id' # of no other client: a refused lease has no token
    need_packages libpq-dev libhiredis-dev
    gcc -O2 -o "$LOADS/lock_pairs" -I"$("$PG_CONFIG" --includedir)" "$ROOT/bench/load/lock_pairs.c" -lhiredis -lpq -lpthread
    write lease "$key" "SELECT (interlock.acquire_lease(:key, '30 s')).token \\gset" "SELECT interlock.release_lease(:key, :token);"
    write empty "$key" "SELECT 1234567890123 AS token, empty_acquire(:key, '30 s') \\gset" "SELECT empty_release(:key, :token);"
    write own_lease "$key" "SELECT own.acquire_lease(:key, '30 s') AS token \\gset" "SELECT own.release_lease(:key, :token);"
}

# A key is a parameter of type text on all sides, as clients send it. Each statement has a second column: alone in its statement,
# lock_key warns that the lock is already released, which costs more than the lock.
write_key_loads() {
    local other='\set other :id + 100000'
    local ten="ARRAY[:id, :id + 11, :id + 22, :id + 33, :id + 44, :id + 55, :id + 66, :id + 77, :id + 88, :id + 99]"
    for name in key_lock uncounted_key_lock; do write $name "SELECT interlock.lock_key(:id), 0;"; done
    write text_lock "SELECT pg_try_advisory_xact_lock(hashtextextended(:id, 0)), 0;"
    write advisory_lock "SELECT pg_try_advisory_xact_lock(:id), 0;"
    write own_key "SELECT own.lock_key(:id), 0;"
    write key_locks "$other" "SELECT interlock.lock_keys(ARRAY[:id, :other]), 0;"
    write advisory_locks "$other" "SELECT pg_advisory_xact_lock(hashtextextended(:id, 0)), pg_advisory_xact_lock(hashtextextended(:other, 0));"
    write own_keys "$other" "SELECT own.lock_keys(ARRAY[:id, :other]), 0;"
    write select_for_update "SELECT key FROM interlock.select_for_update('plain', $ten);"
    write hand_rows "SELECT id FROM plain WHERE id = ANY($ten) ORDER BY id FOR UPDATE;"
    write own_rows "SELECT own.select_for_update($ten);"
}

# Each request has a body of its own, as clients send them: what is computed of a constant is computed once, in the plan.
write_idempotency_loads() {
    local next="SELECT nextval('requests') AS request \\gset" key="'request ' || :request::text" answer="'{\"a\": 1}'"
    local body="('{\"amount\": ' || :request::text || '}')"
    write hand_idempotency "$next" \
        "INSERT INTO keys VALUES ('pay', $key, 'pending', sha256(convert_to($body, 'UTF8')), NULL, NULL, now()) ON CONFLICT DO NOTHING RETURNING key;" \
        "UPDATE keys SET status = 'completed', response = $answer WHERE scope = 'pay' AND key = $key;"
    write full_idempotency "$next" \
        "INSERT INTO full_keys (scope, key, request_hash, claimed_at, deadline, expires_at) VALUES ('pay', $key, sha256(convert_to($body, 'UTF8')), now(), now() + '1 min', now() + '1 day') ON CONFLICT DO NOTHING RETURNING token \\gset" \
        "UPDATE full_keys SET status = 'completed', response = $answer, finished_at = now() WHERE scope = 'pay' AND key = $key AND token = :token AND status = 'pending';"
    write call_idempotency "$next" \
        "SELECT (interlock.idempotency_claim('pay', $key, $body::jsonb)).token \\gset" \
        "SELECT interlock.idempotency_complete('pay', $key, :token, $answer);"
    write own_idempotency "$next" \
        "SELECT proof FROM own.claim('pay', $key, $body::jsonb) \\gset" \
        "SELECT own.complete('pay', $key, :proof, $answer);"
}
