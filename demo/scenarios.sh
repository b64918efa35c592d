# scenarios.sh: what goes wrong without the extension, and what happens with it: a function each. To be sourced by script/demo.
#
# A scenario counts in the data what was lost after a load without the extension and after the same load with it, says
# both, and adds a row to the summary. What it needs is in work.sh, its tables and loads are in load/.

SCENARIOS="two_administrators config orders coupons seats documents bank payments reports parts crash cms claim_rows blind_updates children flash_sale carts imports"

two_administrators() {
    heading "1. Two administrators edit one configuration row"
    note "both have it open; one saves a new title, then the other a new price"
    local saved="SELECT title || ', ' || price FROM page_config"
    new_database two_administrators
    ask "UPDATE page_config SET title = 'new title', price = 10 WHERE id = 1" >/dev/null
    ask "UPDATE page_config SET title = 'old title', price = 12 WHERE id = 1" >/dev/null
    local without=$(ask "SELECT count(*) FROM page_config WHERE title <> 'new title'")
    say "without: both got "saved"; the row says: $(ask "$saved")"

    new_database two_administrators "SELECT interlock.enable_versioning('page_config')"
    ask "SELECT interlock.versioned_update('page_config', 1, 1, '{\"title\": \"new title\"}')" >/dev/null
    say "with: the other gets: $(refusal "SELECT interlock.versioned_update('page_config', 1, 1, '{\"price\": 12}')")"
    ask "SELECT interlock.try_versioned_update('page_config', 1, 1, '{\"price\": 12}', '{\"price\": 10}', 'merge')" >/dev/null
    say "and merges what only it changed; the row says: $(ask "$saved")"
    row "titles lost" "$without of 1" "$(ask "SELECT count(*) FROM page_config WHERE title <> 'new title'")"
}

config() {
    heading "2. Administrators edit 50 configuration rows"
    note "each reads a row, thinks for a millisecond, and saves one more than it read"
    local lost="SELECT (SELECT count(*) FROM saved) - (SELECT sum(n) FROM config)"
    new_database config
    load config_without
    local without=$(ask "$lost") saves=$(ask "SELECT count(*) FROM saved")
    say "without: $saves saves were acknowledged, $without of them are lost"

    new_database config "SELECT interlock.enable_versioning('config')"
    load config_counter
    local with=$(ask "$lost")
    say "with a version counter: $(ask 'SELECT count(*) FROM saved') saves, $with lost; the others got a conflict"
    row "saves lost, version counter" "$without of $saves" "$with"

    new_database config "SELECT interlock.enable_versioning('config', 'updated_time')"
    load config_time
    with=$(ask "$lost")
    say "with updated_time as the version: $(ask 'SELECT count(*) FROM saved') saves, $with lost"
    row "saves lost, updated_time" "$without of $saves" "$with"
}

orders() {
    heading "3. Orders are paid, cancelled and shipped at once"
    local jumps="SELECT count(*) FROM (SELECT id, from_state FROM step GROUP BY 1, 2 HAVING count(*) > 1) twice"
    new_database orders
    load orders_without
    local without=$(ask "$jumps")
    say "without: $without orders left one state twice, $(ask "
        SELECT count(*) FROM (SELECT id FROM step WHERE to_state IN ('paid', 'cancelled')
        GROUP BY id HAVING count(DISTINCT to_state) = 2) mixed") of them paid and cancelled"

    new_database orders "SELECT interlock.define_transitions('orders', 'status',
        '{\"pending\": [\"paid\", \"cancelled\"], \"paid\": [\"shipped\"]}', '{pending}')"
    load orders_with
    local with=$(ask "$jumps")
    say "with: $with; a jump by plain SQL is refused: $(refusal "UPDATE orders SET status = 'pending' WHERE status = 'shipped'")"
    row "orders with two outcomes" "$without of 400" "$with"
}

coupons() {
    heading "4. A coupon is redeemed on eight devices"
    local twice="SELECT count(*) FROM (SELECT id FROM redeemed GROUP BY id HAVING count(*) > 1) twice"
    new_database coupons
    load coupons_without
    local without=$(ask "$twice") coupons=$(ask "SELECT count(DISTINCT id) FROM redeemed")
    say "without: $coupons coupons were redeemed, $without of them more than once"

    new_database coupons "SELECT interlock.define_transitions('coupon', 'status', '{\"unused\": [\"redeemed\"]}', '{unused}')"
    load coupons_with
    local with=$(ask "$twice")
    say "with: $(ask "SELECT count(DISTINCT id) FROM redeemed") coupons were redeemed, $with more than once"
    row "coupons redeemed twice" "$without of $coupons" "$with"
}

seats() {
    heading "5. $CLIENTS buyers fight over 200 seats"
    local twice="SELECT count(*) FROM (SELECT seat FROM ticket GROUP BY seat HAVING count(*) > 1) twice"
    new_database seats
    load seats_without
    local without=$(ask "$twice")
    say "without: $(ask 'SELECT count(*) FROM ticket') tickets for 200 seats, $without seats sold more than once"

    new_database seats "CREATE UNIQUE INDEX ON ticket (seat);
        SELECT interlock.define_transitions('seat', 'status', '{\"free\": [\"sold\"]}', '{free}')"
    load seats_with
    local with=$(ask "$twice") tickets=$(ask 'SELECT count(*) FROM ticket')
    say "with: $tickets tickets for $(ask "SELECT count(*) FROM seat WHERE status = 'sold'") seats that are sold," \
        "$with of them more than once"
    row "seats sold twice" "$without of 200" "$with"
    lose "$(ask "SELECT count(*) FROM seat FULL JOIN ticket ON seat = seat.id WHERE (status = 'sold') IS DISTINCT FROM (seat IS NOT NULL)")"
}

documents() {
    heading "6. Editors who forget to save, and an import that ignores them"
    local overwritten="SELECT count(*) FROM overwritten"
    local stuck="SELECT count(*) FROM document WHERE lock_status = 1"
    new_database documents
    load documents_without
    local lost_edits=$(ask "$overwritten")
    local without=$(ask "$stuck")
    say "without: $without of 40 documents are held for ever, $lost_edits times the import wrote over an edit"

    new_database documents "SELECT interlock.enable_marker('document', '1 s');
        CREATE FUNCTION note_late() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
            INSERT INTO public.late VALUES (NEW.id, clock_timestamp() - OLD.lock_until); RETURN NULL; END \$\$;
        CREATE TRIGGER note_late AFTER UPDATE ON document FOR EACH ROW
            WHEN (OLD.lock_status = 1 AND NEW.lock_status = 0 AND OLD.lock_until < clock_timestamp())
            EXECUTE FUNCTION note_late()"
    load documents_with
    say "with: $(ask 'SELECT count(*) FROM refused') attempts were refused, for example: $(refusal "
        DO \$\$ BEGIN PERFORM interlock.lock_row('document', 1, 'somebody');
        UPDATE document SET body = 'x' WHERE id = 1; END \$\$")"
    wait_until "SELECT count(*) = 0 FROM document WHERE lock_status = 1"
    local held=$(ask "$stuck") edits=$(ask "$overwritten")
    say "later $held documents are held; the sweeper released $(ask 'SELECT count(*) FROM late'), at worst" \
        "$(ask "SELECT coalesce(round(extract(epoch FROM max(by)) * 1000), 0) FROM late") ms after the deadline"
    row "documents stuck" "$without of 40" "$held"
    row "edits overwritten" "$lost_edits" "$edits"
}

bank() {
    heading "7. Money moves between 20 accounts, in any direction"
    local without with
    new_database bank
    withdraw_both "SELECT pg_sleep(0)"
    say "without: two people see 1000 and take 700 and 500; the account says: $(ask "SELECT balance FROM account WHERE id = 1")"
    new_database bank "SELECT 1"
    withdraw_both "SELECT interlock.lock_key('account:1')"
    say "with: the second one sees what the first left; the account says: $(ask "SELECT balance FROM account WHERE id = 1")"

    new_database bank
    load bank_without --max-tries=0
    without=$(ask "$DEADLOCKS")
    local overdrafts=$(ask "SELECT count(*) FROM overdraft")
    say "without: $without transfers deadlocked, $overdrafts overdrew an account, the sum is $(ask 'SELECT sum(balance) FROM account')"
    new_database bank "SELECT 1"
    load bank_with --max-tries=0
    with=$(ask "$DEADLOCKS")
    say "with both keys locked in order: $with deadlocked, $(ask "SELECT count(*) FROM overdraft") overdrew," \
        "the sum is $(ask 'SELECT sum(balance) FROM account')"
    row "transfers deadlocked" "$without" "$with"
    row "accounts overdrawn" "$overdrafts" "$(ask 'SELECT count(*) FROM overdraft')"
    lose "$(ask "SELECT abs(sum(balance) - 20000) FROM account")"
}

payments() {
    heading "8. Payments are sent again and again, and half of the workers die"
    local twice="SELECT count(*) FROM (SELECT FROM charge GROUP BY payment HAVING count(*) > 1) twice"
    new_database payments
    load payments_without
    local without=$(ask "$twice") charged=$(ask "SELECT count(DISTINCT payment) FROM charge")
    say "without: $charged payments were charged, $without of them more than once"

    new_database payments "SELECT interlock.define_idempotency_scope('pay', 'job', stale_after => '200 ms'),
        interlock.define_idempotency_scope('import', 'job', stale_after => '200 ms')"
    load payments_with
    local with=$(ask "$twice") stuck
    sleep 0.3
    stuck=$(ask "SELECT count(*) FROM interlock.idempotency WHERE status = 'pending' AND deadline > clock_timestamp()")
    say "with: $(ask "SELECT count(*) FROM charge") payments were charged, $with more than once, $stuck keys are stuck"
    row "payments charged twice" "$without of $charged" "$with"
    lose "$stuck"

    local workers=0
    while [ "$(ask "SELECT count(*) FROM interlock.idempotency WHERE scope = 'import' AND status = 'completed'")" = 0 ]; do
        workers=$((workers + 1))
        import_one_part
    done
    say "$workers workers were killed after one part each of an import, and resumed it: parts $(ask \
        "SELECT string_agg(part::text, ' ' ORDER BY part) FROM imported") were imported"
    lose "$(ask "SELECT abs(5 - count(*)) + abs(5 - count(DISTINCT part)) FROM imported")"
}

# import_one_part: a worker that resumes the import of five parts, and is killed after the next part.
import_one_part() {
    psql -qXAtd demo >/dev/null 2>&1 <<'SQL' || true
SELECT token, coalesce(checkpoint, '0')::int + 1 AS part, coalesce(checkpoint, '0')::int + 1 = 5 AS is_last
  FROM interlock.idempotency_claim('import', 'file', wait => '5 s') \gset
BEGIN;
SELECT interlock.idempotency_assert('import', 'file', :token);
INSERT INTO imported VALUES (:part);
SELECT interlock.idempotency_checkpoint('import', 'file', :token, :'part');
COMMIT;
\if :is_last
SELECT interlock.idempotency_complete('import', 'file', :token);
\endif
SELECT pg_terminate_backend(pg_backend_pid());
SQL
}

reports() {
    local ticks=$((SECONDS_EACH + 2))
    heading "9. $CLIENTS workers, and a report that one of them is to make at every tick"
    note "$ticks ticks; one worker is killed with kill -9 in the middle of its work, and at every fourth tick"
    note "one is stopped (SIGSTOP) until somebody else has made the next report"
    local numbers="SELECT (SELECT count(*) FROM (SELECT FROM made GROUP BY tick HAVING count(*) = 1) once) || ' reports were made once, '
        || (SELECT count(*) FROM (SELECT FROM made GROUP BY tick HAVING count(*) > 1) twice) || ' twice'"
    local twice="SELECT count(*) - count(DISTINCT tick) FROM made"
    local older="SELECT count(*) FROM overwritten"
    new_database reports
    work reports_without "$ticks"
    local without=$(ask "$twice") overwritten=$(ask "$older")
    say "without, SET NX EX as in Redis: $(ask "$numbers")$(ask "
        SELECT '; a worker that woke up wrote report ' || is_now || ' over report ' || was FROM overwritten LIMIT 1")"

    new_database reports "SELECT 1"
    work reports_with "$ticks"
    local refused=$(cat "$WORK"/worker.*.log | grep -c 'ERROR:  IL006' || true)
    say "with: $(ask "$numbers"); refused, as they woke up too late: $refused, with" \
        "$(sed -n 's/^.*ERROR:  //p' "$WORK"/worker.*.log | head -n 1)"
    say "the report of the killed worker was made by another $(ask "
        SELECT round(extract(epoch FROM min(made.at) - accident.at) * 1000)
        FROM made JOIN accident USING (tick) WHERE signal = 'KILL' GROUP BY accident.at") ms later, when its lease had expired"
    row "reports made twice" "$without of $ticks" "$(ask "$twice")"
    row "reports replaced by older ones" "$overwritten" "$(ask "$older")"
    lose "$(ask "SELECT $ticks - count(DISTINCT tick) FROM made")"
    local asleep=$(ask "SELECT count(worker) FROM accident WHERE signal = 'STOP'")
    lose $((refused < asleep ? asleep - refused : 0))
}

parts() {
    heading "10. Thumbnails and search entries of one product, and an import of all of it"
    local imports="SELECT count(*) FROM overlap WHERE part = 'product:7'"
    local siblings="SELECT count(*) FROM overlap WHERE part <> 'product:7'"
    local lost="SELECT (SELECT count(*) FROM work WHERE part <> 'product:7') - (SELECT thumbs + entries FROM product)"
    new_database parts
    load parts_without -T $(((SECONDS_EACH + 2) / 3))
    local without=$(ask "$imports") without_lost=$(ask "$lost")
    say "without, a lock for each name: $(ask "$siblings") times a thumbnail and a search entry were made at the same time," \
        "$without times an import ran while a part was made; $without_lost parts are lost"

    new_database parts "SELECT 1"
    load parts_with -T $(((SECONDS_EACH + 2) / 3))
    local with=$(ask "$imports")
    say "with leases on paths: $(ask "$siblings") times two parts were made at the same time, $with times an import ran while a part was made, of" \
        "$(ask "SELECT count(*) FROM work WHERE part = 'product:7'") imports; $(ask "$lost") parts are lost"
    row "imports while a part was made" "$without" "$with"
    row "parts of products lost" "$without_lost" "$(ask "$lost")"
}

crash() {
    heading "11. The server is killed with kill -9 while 40 workers hold leases"
    note "half of the workers die with it; others ask for all of the 40 as soon as it is back"
    local twice="SELECT count(*) FROM answer WHERE what = 'acquired' AND was_held"
    new_database crash
    ask "ALTER SYSTEM SET interlock.lease_recovery = immediate" >/dev/null # from the next start on
    kill_server
    ask "CALL come_back()" >/dev/null
    local without=$(ask "$twice")
    say "without a grace, as a server that has forgotten its locks: $without of 40 were given to another while they were held"

    ask "ALTER SYSTEM RESET interlock.lease_recovery" >/dev/null
    new_database crash
    kill_server
    ask "CALL come_back()" >/dev/null
    say "with: $(ask "SELECT count(DISTINCT id) FROM answer WHERE what = 'renewed'") were renewed by the workers that lived," \
        "$(ask "SELECT count(*) FROM answer WHERE what = 'recovering'") times others got "recovering"," \
        "$(ask "SELECT count(*) FROM answer WHERE what = 'acquired' AND id % 2 = 0") leases of the dead were granted after they had expired"
    row "leases granted twice" "$without of 40" "$(ask "$twice")"
    lose "$(ask "SELECT count(*) FROM answer WHERE what = 'lost' AND was_held")"
    lose "$(ask "SELECT 20 - count(*) FROM answer WHERE what = 'acquired' AND id % 2 = 0")"
}

cms() {
    heading "12. Two editors and six workers save whole products"
    note "each reads a product, thinks for a millisecond, and saves all of it with its own column changed"
    local numbers="SELECT count(*) FROM saved" lost="SELECT sum(lost) FROM (SELECT descriptions AS lost FROM lost UNION ALL SELECT others FROM lost) both_kinds"
    new_database cms
    ask "CALL one_edit('SELECT')" >/dev/null
    local versions=$(ask "SELECT count(*) FROM product_version WHERE id = 0")
    load cms_without
    local descriptions=$(ask "SELECT descriptions FROM lost") others=$(ask "SELECT others FROM lost")
    say "without: of $(ask "$numbers") saves $descriptions descriptions and $others thumbnails, prices and so on are lost; one edit made $versions versions"

    new_database cms "SELECT interlock.grant_writer(writer, 'public') FROM unnest('{editor,thumbnail,search,translation,price,stock,review}'::text[]) writer;
        SELECT interlock.enable_versioning('product'), interlock.enable_history('product', keep_versions => 20),
            interlock.own_columns('product', 'editor', '{description}', 'skip');
        SELECT interlock.own_columns('product', writer, ARRAY[writer], 'skip')
            FROM unnest('{thumbnail,search,translation,price,stock,review}'::name[]) writer;
        DROP TRIGGER keep_version ON product"
    ask "CALL one_edit(\$\$SELECT interlock.set_writer('WRITER'),
        CASE WHEN 'WRITER' <> 'editor' THEN interlock.suppress_history('product', 'after an edit') END\$\$)" >/dev/null
    local kept=$(ask "SELECT count(*) FROM interlock.row_history('product', 0)")
    say "with: one edit made $kept version, and $(ask "SELECT count(*) FROM interlock.operation_log") lines in the operation log, of" \
        "$(ask "SELECT string_agg(writer, ', ' ORDER BY written_at) FROM interlock.operation_log")"
    load cms_with
    say "of $(ask "$numbers") saves $(ask "$lost") are lost; $(ask "SELECT coalesce(sum(row_count), 0) FROM interlock.skipped_writes") times a worker would have written" \
        "an old value over what another had saved"
    row "descriptions lost" "$descriptions" "$(ask "SELECT descriptions FROM lost")"
    row "other columns lost" "$others" "$(ask "SELECT others FROM lost")"
    row "extra versions of one edit" "$((versions - 1))" "$((kept - 1))"
}

claim_rows() {
    heading "13. $CLIENTS workers share 400 jobs, and are killed with kill -9 all the time"
    local left="SELECT count(*) FROM job" twice="SELECT count(*) - count(DISTINCT id) FROM done"
    new_database claim_rows
    work_off claim_rows_without "status = 'waiting'"
    local without=$(ask "$left")
    say "without, SKIP LOCKED by hand: $KILLED workers were killed, $without of 400 jobs say "running" for ever"

    new_database claim_rows "SELECT interlock.enable_marker('job', '2 s')"
    work_off claim_rows_with true
    local repeated=$(ask "$twice")
    say "with: $KILLED workers were killed, $(ask "SELECT count(DISTINCT id) FROM done") of 400 jobs are done," \
        "$repeated of them twice"
    row "jobs lost" "$without of 400" "$(ask "SELECT 400 - count(DISTINCT id) FROM done")"
    lose "$(ask "$left")"
    lose "$repeated"
}

blind_updates() {
    heading "14. An ORM saves 50 notes, and does not compare versions"
    note "each client reads a note, thinks for a millisecond, and saves one more than it read: ... WHERE id = 7"
    local lost="SELECT (SELECT count(*) FROM saved) - (SELECT sum(n) FROM note)" numbers="SELECT count(*) FROM saved"
    new_database blind_updates
    load blind_updates_without
    local without=$(ask "$lost") saves=$(ask "$numbers")
    say "without: $saves saves were acknowledged, $without of them are lost"

    new_database blind_updates "SELECT interlock.enable_versioning('note')"
    load blind_updates_without
    say "with versions that the ORM does not compare: $(ask "$lost") of $(ask "$numbers") are lost, but no longer unnoticed:" \
        "view blind_updates counts $(ask "SELECT blind || ', ' || overwrote || ' of rows that another had just saved' FROM interlock.blind_updates")"

    new_database blind_updates "SELECT interlock.enable_versioning('note', blind_updates => 'reject')"
    say "with blind_updates => 'reject': $(refusal "UPDATE note SET n = 1, version = version + 1 WHERE id IN (7)")"
    load blind_updates_with
    local with=$(ask "$lost") accepted=$(ask "SELECT count(*) FROM saved")
    say "$(ask 'SELECT count(*) FROM refused') such saves were refused; of the $accepted that then compared the version" \
        "and were acknowledged $with are lost"
    row "saves of an ORM lost" "$without of $saves" "$with"
}

# work_off LOAD CONDITION: CLIENTS workers, each of them a pgbench, until no job that meets the condition is left. Every tenth of a
# second one is killed, and another begins.
work_off() {
    local script=$(script_of "$1") workers=() worker=0 place
    KILLED=0
    for place in $(seq "$CLIENTS"); do hire; done
    while [ "$(ask "SELECT EXISTS (SELECT FROM job WHERE $2)")" = t ]; do
        place=$((RANDOM % CLIENTS + 1))
        kill -KILL "${workers[place]}" 2>/dev/null && KILLED=$((KILLED + 1)) # else it has ended, as its claim was lost
        hire
        sleep 0.1
    done
    sleep "$([ -n "$SLOW" ] && echo 3 || echo 0.5)" # for what is being done at the moment
    kill -KILL "${workers[@]}" 2>/dev/null || true
}

# hire: a worker at `place`.
hire() {
    worker=$((worker + 1))
    pgbench -n -T 600 -D worker="$worker" -f "$script" demo >/dev/null 2>"$WORK/worker.$place.log" &
    workers[place]=$!
    disown "${workers[place]}" # or bash reports it when it is killed; at the latest it ends with the server
}

DEADLOCKS="SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"

# withdraw_both LOCK: two people take from account 1 at once, each if there is enough after LOCK.
withdraw_both() {
    local amount pids=()
    for amount in 700 500; do
        psql -qXAtd demo >/dev/null <<SQL &
BEGIN;
$1;
SELECT balance >= $amount AS enough, pg_sleep(0.3) FROM account WHERE id = 1 \gset
\if :enough
UPDATE account SET balance = balance - $amount WHERE id = 1;
\endif
COMMIT;
SQL
        pids+=($!)
        sleep 0.1
    done
    wait "${pids[@]}"
}

children() {
    heading "15. Editors save the totals of 20 documents, and a program adds lines"
    note "an editor reads a document with its lines, thinks for a millisecond, adds a line and saves the total: ... AND version = 7"
    local wrong="SELECT count(*) FROM saved WHERE total <> lines" totals="SELECT count(*) FROM saved"
    new_database children
    load children
    local without=$(ask "$wrong") saves=$(ask "$totals")
    say "without: $saves totals were saved, $without of them match neither the lines before nor the lines after"

    new_database children "SELECT interlock.enable_versioning('doc'), interlock.guard_children('line', 'doc')"
    load children
    local with=$(ask "$wrong")
    say "with guard_children: $(ask "$totals") totals were saved, $with of them are wrong;" \
        "the version of the documents has moved $(ask "SELECT sum(version - 1) FROM doc") times"
    row "totals saved that are wrong" "$without of $saves" "$with"
}

flash_sale() {
    heading "16. $CLIENTS buyers at a time want the last 100 pieces of one item"
    note "each takes a piece, pays for 10 ms, and commits; one in ten changes their mind and rolls back"
    local oversold="SELECT greatest(count(*) - 100, 0) FROM purchase" numbers="SELECT count(*) FROM purchase"
    local took="SELECT coalesce(round(extract(epoch FROM max(at) - min(at)) * 1000), 0) FROM purchase"
    new_database flash_sale
    load flash_sale_without
    local without=$(ask "$oversold") orders=$(ask "$numbers")
    say "without, each reads what is left and writes one less: $orders orders for 100 pieces, and the shop says $(ask "SELECT stock FROM item") are left"

    new_database flash_sale
    load flash_sale_update
    local update=$(ask "$took")
    say "with UPDATE ... WHERE stock > 0, each waits until the one before has paid: $(ask "$numbers") sold, in $update ms"

    new_database flash_sale "SELECT interlock.enable_escrow('item', 'stock')"
    ask "SELECT interlock.adjust('item', 7, 'stock', -1)" >/dev/null # the first change is made in the row
    ask "SELECT interlock.adjust('item', 7, 'stock', 1)" >/dev/null
    load flash_sale_with
    local left=$(ask "SELECT interlock.escrow_value('item', 7, 'stock')") sold=$(ask "$numbers")
    say "with adjust, all of them pay at the same time: $sold sold, in $(ask "$took") ms, $left left;" \
        "$(ask "SELECT count(*) FROM sold_out") buyers learned that it is sold out"
    row "pieces sold, not in stock" "$without of $orders" "$(ask "$oversold")"
    lose "$(ask "SELECT abs(100 - $left - $sold)")"
}

carts() {
    heading "17. $CLIENTS customers at a time have three articles in a cart that lasts for 20 ms"
    note "of ten customers five pay at once, three pay after 50 ms, and two go away; there are 100 pieces of each article"
    local oversold="SELECT coalesce(sum(n - 100) FILTER (WHERE n > 100), 0) FROM (SELECT count(*) AS n FROM sold GROUP BY item) s"
    local numbers="SELECT count(*) FROM sold"
    new_database carts
    load carts_without
    local without=$(ask "$oversold") pieces=$(ask "$numbers")
    say "without, whoever comes by returns the pieces of carts that have ended: their customers pay nevertheless;" \
        "$pieces of 600 pieces are sold, $without of them twice"

    new_database carts "SELECT interlock.enable_escrow('item', 'stock')"
    load carts_with
    wait_until "SELECT count(*) = 0 FROM interlock.reservations"
    local left=$(ask "SELECT sum(interlock.escrow_value('item', id, 'stock')) FROM item") sold=$(ask "$numbers")
    say "with reserve_many: $sold sold, $left left; $(ask "SELECT count(*) FROM too_late") customers learned before they paid" \
        "that their cart has ended; $(ask "SELECT count(*) FROM interlock.escrow_check('item') WHERE difference = 0") of 6 counters are proved"
    row "pieces of ended carts sold twice" "$without of $pieces" "$(ask "$oversold")"
    lose "$(ask "SELECT abs(600 - $left - $sold)")"
}

imports() {
    heading "18. Four editors correct prices while a catalog of 400 articles is imported"
    note "the import sends the same rows each time; an editor's correction is to stay"
    local lost="SELECT count(*) FROM lost" numbers="SELECT count(*) FROM corrected"
    new_database imports
    load imports_without
    local without=$(ask "$lost") corrections=$(ask "$numbers")
    say "without: of $corrections articles with a correction $without have the price of the import again"

    new_database imports "SELECT interlock.grant_writer('editor', 'public'), interlock.grant_writer('importer', 'public');
        SELECT interlock.enable_versioning('article', unchanged => 'keep'),
            interlock.own_columns('article', 'editor', '{price}', 'skip', once_changed => true)"
    load imports_with
    local moved=$(ask "SELECT count(*) FROM article WHERE version > 1 AND id NOT IN (SELECT id FROM corrected)")
    say "with: $(ask "$lost") of $(ask "$numbers") have; $(ask "SELECT coalesce(sum(row_count), 0) FROM interlock.skipped_writes") times the import" \
        "left a correction as it was; it moved the version of $moved rows that it did not change"
    row "corrections lost" "$without of $corrections" "$(ask "$lost")"
    lose "$moved"
}
