#!/usr/bin/env bash
# Moves slots to another shard while clients work.
#
#   move-slots.sh ROUTER FIRST LAST SHARD
#   move-slots.sh 'host=router dbname=router' 86 127 shard3
#
# ROUTER is a conninfo of libpq, as a superuser. SHARD is a name in the router's table "shard". Each slot is moved by itself: the old
# shard grants no new leases, the script waits for the end of those that are held, and then moves the rows. Run one at a time. If it
# fails, run it again with the same arguments: nothing is lost, and the slot is not served until then.

set -euo pipefail

if [ "${1:-}" = --help ]; then exec sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; fi
if [ $# != 4 ]; then
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2
    exit 64
fi
router=$1 to_name=$4

# What belongs to a tenant, and the column that says whose it is.
tables=('invoice tenant' 'payment tenant' 'interlock.idempotency key')

# on CONNINFO SQL: its result.
on() { psql -qXAt -v ON_ERROR_STOP=1 -d "$1" -c "$2"; }

# rows SLOT: SQL that copies the rows of the slot from the old shard to the new one, in one transaction.
rows() {
    local table key
    echo 'BEGIN;'
    for table in "${tables[@]}"; do
        read -r table key <<<"$table"
        echo "DELETE FROM $table WHERE slot_of($key) = $1; COPY $table FROM STDIN;"
        on "$from" "COPY (SELECT * FROM $table WHERE slot_of($key) = $1) TO STDOUT"
        echo '\.'
    done
    echo 'COMMIT;'
}

to=$(on "$router" "SELECT conninfo FROM shard WHERE name = '$to_name'")
if [ -z "$to" ]; then echo "there is no shard $to_name" >&2 && exit 1; fi
for ((slot = $2; slot <= $3; slot++)); do
    from=$(on "$router" "SELECT conninfo FROM slot JOIN shard ON name = shard WHERE slot = $slot")
    if [ "$from" = "$to" ]; then continue; fi

    # If an earlier run has opened the slot on the new shard, only the map is missing.
    if [ "$(on "$to" "SELECT state FROM slot WHERE slot = $slot")" != open ]; then
        # 1. No new leases. Those that are held are renewed, and their holders write, until they are released. After a crash of the old
        # shard, the holders have not all come back before the grace ends.
        on "$from" "SELECT set_slot($slot, 'draining')" >/dev/null
        until [ "$(on "$from" "SELECT outcome <> 'recovering' AND NOT EXISTS (SELECT FROM interlock.leases WHERE slot_of(key) = $slot AND key <> 'move-slots')
                                 FROM interlock.acquire_lease('move-slots', 1)")" = t ]; do
            sleep 0.2
        done
        # 2. Nothing is served. This waits for the transactions that have entered the slot.
        on "$from" "SELECT set_slot($slot, 'closed')" >/dev/null
        # 3. The rows. Then tokens of claims, and versions of new rows, begin above those that have come.
        rows "$slot" | psql -qX -v ON_ERROR_STOP=1 -d "$to" -f -
        on "$to" 'SELECT FROM interlock.resync_sequences()' >/dev/null
        # 4. The new shard serves the slot.
        on "$to" "SELECT set_slot($slot, 'open')" >/dev/null
    fi
    # 5. The map leads there. Clients with the old map are refused by the old shard.
    on "$router" "SELECT assign_slots($slot, $slot, '$to_name')" >/dev/null
    # 6. The old shard forgets the slot.
    for table in "${tables[@]}"; do
        read -r table key <<<"$table"
        on "$from" "DELETE FROM $table WHERE slot_of($key) = $slot"
    done
    on "$from" "DELETE FROM slot WHERE slot = $slot"
done
