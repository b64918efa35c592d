#!/usr/bin/env bash
# Runs a command while it holds a lease, so that one copy works at a time, on whichever machine.
#
#   lease-heartbeat.sh KEY TTL COMMAND [ARGUMENT...]
#   lease-heartbeat.sh report:daily 30 ./make-report today
#
# It connects as psql does (PGHOST, PGDATABASE, ...) and renews the lease after half of TTL, in seconds. The command is
# ended when the lease is lost, or could not be renewed for three quarters of TTL. It finds LEASE_KEY and LEASE_TOKEN in
# its environment: let it call interlock.assert_lease in each transaction that writes, as a paused machine ends nothing.
#
# LEASE_WAIT: how many seconds to wait for the lease at most, 0 by default. The wait holds a connection.
#
# Exit status: that of the command; 75: another copy works, try again later; 76: the lease was lost; 69: no database; 143: a
# signal has ended it.

set -euo pipefail
set -m # the command is a process group, and is ended with all that it has started

if [ "${1:-}" = --help ]; then exec sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; fi
if [ $# -lt 3 ]; then
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2
    exit 64
fi
export LEASE_KEY=$1 LEASE_TOKEN=
ttl=$2
shift 2
beat=${LEASE_BEAT:-$((ttl / 2))} # seconds between renewals
wait=${LEASE_WAIT:-0}

say() { echo "lease $LEASE_KEY: $*" >&2; }

# ask SQL [SECONDS]: psql quotes :'key' and its like. An unreachable server must not keep us from ending the command in time.
ask() {
    timeout --foreground "$((ttl / 4 + 1 + ${2:-0}))" psql -XqAt -v ON_ERROR_STOP=1 -v "key=$LEASE_KEY" -v "token=$LEASE_TOKEN" -v "ttl=$ttl" \
        -v "wait=$wait" -v "holder=$(hostname) $$" <<<"$1"
}

acquire() {
    local outcome holder asking
    answer=$(mktemp)
    ask "SELECT outcome, token, holder FROM interlock.acquire_lease(
        :'key', make_interval(secs => :'ttl'), make_interval(secs => :'wait'), :'holder')" "$wait" >"$answer" &
    asking=$!
    trap 'reap "$asking"; rm "$answer"; give_back; exit 143' TERM INT HUP
    wait "$asking" || { rm "$answer"; exit 69; }
    IFS='|' read -r outcome LEASE_TOKEN holder <"$answer"
    rm "$answer"
    [ "$outcome" = acquired ] && return
    say "$outcome ${holder:+by $holder}"
    exit 75
}

# Until the command or the lease has ended; false: the lease.
keep() {
    local renewed=$SECONDS asked answer
    while pause && is_working; do
        asked=$SECONDS
        if ! answer=$(ask "SELECT interlock.renew_lease(:'key', :'token') IS NOT NULL"); then
            say "could not renew it"
            if [ $((SECONDS - renewed)) -ge $((ttl * 3 / 4)) ]; then return 1; fi
        elif [ "$answer" = t ]; then
            renewed=$asked
        else
            say "lost"
            return 1
        fi
    done
}

# For a beat, or until the command has ended.
pause() {
    sleep "$beat" &
    local timer=$!
    wait -n "$work" "$timer" 2>/dev/null || true
    reap "$timer"
}

# reap JOB: ends it, if it has not, and keeps the shell from telling that it was ended.
reap() { { kill -- "-$1" && wait "$1"; } 2>/dev/null || true; }

is_working() { kill -0 "$work" 2>/dev/null; }

# The command has a quarter of TTL to end by itself.
stop_work() {
    local left=$((ttl / 4 + 1))
    kill -TERM -- "-$work" 2>/dev/null || return 0
    while is_working && [ $((left--)) -gt 0 ]; do sleep 1; done 2>/dev/null
    { kill -KILL -- "-$work"; wait "$work"; } 2>/dev/null || true
}

# By the name: the token may not be known yet.
give_back() { ask "SELECT interlock.release_lease(:'key', holder => :'holder')" >/dev/null || true; }

acquire
"$@" &
work=$!
trap 'stop_work; give_back; exit 143' TERM INT HUP
if ! keep; then
    stop_work
    exit 76
fi
status=0
wait "$work" 2>/dev/null || status=$?
give_back
exit "$status"
