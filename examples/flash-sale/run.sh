#!/usr/bin/env bash
# Runs the flash sale on a private server that is thrown away, and prints what sale.mjs does. On a fresh Debian machine, too:
# installs what is missing, builds the extension, and gets pg and graphile-worker from npm.
#
#   examples/flash-sale/run.sh                    10,000 buyers, 100 pieces, 64 connections, three rounds: some minutes
#   examples/flash-sale/run.sh --buyers 1000      options of sale.mjs
#   examples/flash-sale/run.sh --keep             also writes what the chart of docs/guide/hot-rows.md shows: results.tsv, and the chart
#
# Commits wait for the disk, as they do in a shop.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../script/lib.sh"

HERE=$ROOT/examples/flash-sale

main() {
    local option options=() keep=
    for option; do
        case $option in
            --keep) keep=1 ;;
            --help | -h) sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit ;;
            *) options+=("$option") ;;
        esac
    done
    find_server
    command -v npm >/dev/null || need_packages nodejs npm
    make_workspace
    build_extension || { show "$WORK/build.log" && die "could not build"; }
    stage_server
    start_cluster "fsync = on" "max_connections = 150"
    psql -qX -c "CREATE EXTENSION $EXTENSION"
    mkdir "$WORK/node"
    cp "$HERE"/*.mjs "$WORK/node"
    cd "$WORK/node"
    npm install --no-audit --no-fund --silent pg graphile-worker@0.16 || die "could not install the packages of npm"
    heading "A flash sale on PostgreSQL $PG_VERSION, $(nproc) cores"
    node sale.mjs --out "$WORK/results.tsv" ${options[@]+"${options[@]}"}
    if [ -n "$keep" ]; then
        {
            echo "# pg_interlock $(sed -n "s/^default_version *= *'\(.*\)'/\1/p" "$ROOT/$EXTENSION.control"), PostgreSQL $PG_VERSION, $(nproc) cores, $(rounds_of "$WORK/results.tsv")"
            cat "$WORK/results.tsv"
        } >"$HERE/results.tsv"
        "$ROOT/bench/flash-sale.pl"
    fi
}

rounds_of() {
    local rounds=$(tail -n 1 "$1" | cut -f 1)
    if [ "$rounds" = 1 ]; then echo "one round"; else echo "$rounds rounds"; fi
}

main "$@"
