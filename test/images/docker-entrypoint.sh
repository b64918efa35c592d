#!/usr/bin/env bash
# What the entrypoint of the official image is documented to do, as far as the tests need it: an empty data directory is
# initialized, and /docker-entrypoint-initdb.d/*.sql runs on a server that only a socket reaches and that has the options
# of the command; then the command runs.
set -euo pipefail

PGDATA=${PGDATA:?}
user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}

# Options without a command are for the server.
if [ "${1:0:1}" = - ]; then set -- postgres "$@"; fi

if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA" /var/run/postgresql
    chown -R postgres "$PGDATA" /var/run/postgresql
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}
    if [ "$method" = trust ]; then POSTGRES_PASSWORD=none; fi
    initdb -D "$PGDATA" --username="$user" --pwfile=<(echo "${POSTGRES_PASSWORD:?}") --auth-host="$method"
    echo "host all all all $method" >>"$PGDATA/pg_hba.conf"
    pg_ctl -D "$PGDATA" -o "$(printf '%q ' "${@:2}" -c listen_addresses=)" -w start
    if [ "$database" != postgres ]; then createdb -U "$user" "$database"; fi
    for file in /docker-entrypoint-initdb.d/*.sql; do
        if [ -e "$file" ]; then psql -X -v ON_ERROR_STOP=1 -U "$user" -d "$database" -f "$file"; fi
    done
    pg_ctl -D "$PGDATA" -m fast -w stop
fi
exec "$@"
