# peers.sh: Redis, and lock libraries for node. To be sourced by script/bench.
#
# What cannot be had is reported as not measured. SYNCGUARD may name another version of that package, a directory or a tarball.

NODE_PACKAGES=(postgres@3 ioredis@5 redlock@4 "${SYNCGUARD:-syncguard@2}")

peer_lines() {
    line "$1" "leases from node" node_interlock \
        "syncguard on PostgreSQL" node_syncguard-postgres - \
        "syncguard on Redis" node_syncguard-redis - \
        "redlock on one Redis" node_redlock -
}

# --- Redis ---------------------------------------------------------------------

# Debian's redis-check-rdb is the server by another name; the package redis-server would start a service.
REDIS=(redis redis-aof) # one that keeps nothing, and one that keeps its locks over a restart, as leases are

set_up_redis() {
    local load
    progress "starting Redis"
    if ! { (need_packages redis-tools) && start_redis redis && start_redis redis-aof --appendonly yes --appendfsync no --auto-aof-rewrite-percentage 0; } >"$WORK/redis.log" 2>&1; then
        for load in redis_c redis-aof_c redis_benchmark node_syncguard-redis node_redlock; do
            UNAVAILABLE[$load]="no Redis: $(tail -n 1 "$WORK/redis.log")"
        done
    else
        add_about --arg version "$("$WORK/redis-server" --version | sed 's/.* v=\([^ ]*\).*/\1/')" \
            --arg hiredis "$(dpkg-query -W -f '${Version}' libhiredis-dev)" '.versions += {redis: $version, hiredis: $hiredis}'
    fi
    end_progress
}

# start_redis NAME [OPTION...]
start_redis() {
    local place=$WORK/$1 try
    shift
    ln -sf "$(command -v redis-check-rdb)" "$WORK/redis-server" || return
    as_server mkdir "$place"
    as_server "$WORK/redis-server" --port 0 --unixsocket "$place/socket" --unixsocketperm 777 --save '' --appendonly no \
        --dir "$place" --daemonize yes --pidfile "$place/pid" --logfile "$place/log" "$@" || return
    for ((try = 0; try < 100; try++)); do
        if [ -s "$place/pid" ] && redis-cli -s "$place/socket" ping; then return; fi
        sleep 0.1
    done
    tail -n 1 "$place/log" && return 1
}

stop_redis() {
    local name
    for name in "${REDIS[@]}"; do
        [ ! -s "${WORK:-}/$name/pid" ] || kill "$(cat "$WORK/$name/pid")" 2>/dev/null || true
    done
}

# side_in_c LOAD: the argument of lock_pairs.
side_in_c() {
    case $1 in
        redis*) echo "redis=$WORK/${1%_c}/socket" ;;
        *@*) echo "${1%_c@*}=host=$WORK/against/socket" ;;
        *) echo "${1%_c}=" ;;
    esac
}

# sample_redis_benchmark CLIENTS SECONDS COMMAND...: pairs a second from the rates of both halves, as it runs one command
# at a time. It is told how many calls, not how long: about as many as fill the time.
sample_redis_benchmark() {
    local clients=$1 calls=$((30000 * $2)) script="if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end" sha
    local key=job:__rand_int__
    shift 2
    sha=$(redis-cli -s "$WORK/redis/socket" script load "$script")
    local run=("$@" redis-benchmark -s "$WORK/redis/socket" -c "$clients" -n "$calls" -r 100000 --csv)
    [ "$clients" = 1 ] || run+=(--threads 2)
    redis-cli -s "$WORK/redis/socket" flushall >/dev/null
    {
        "${run[@]}" set "$key" value NX EX 30 && "${run[@]}" evalsha "$sha" 1 "$key" value
    } 2>"$WORK/load.log" | awk -F '","' '$2 + 0 > 0 {sum += 1 / $2; lines++} END {if (lines != 2) exit 1; printf "%.0f\n", 1 / sum}'
}

# --- node ----------------------------------------------------------------------

set_up_node() {
    local load package
    progress "installing packages for node"
    mkdir -p "$WORK/node"
    cp "$ROOT/bench/load/locks.mjs" "$WORK/node"
    echo '{"private": true}' >"$WORK/node/package.json"
    if ! { command -v node && command -v npm || (need_packages nodejs npm); } >"$WORK/node.log" 2>&1; then
        for load in interlock syncguard-postgres syncguard-redis redlock; do
            UNAVAILABLE[node_$load]="no node: $(tail -n 1 "$WORK/node.log")"
        done
        end_progress
        return
    fi
    add_about --arg version "$(node --version)" '.versions.node = $version'
    for package in "${NODE_PACKAGES[@]}"; do install_node_package "$package"; done
    end_progress
}

# install_node_package NAME@VERSION: without the scripts that packages may bring, which none of these needs.
install_node_package() {
    local name=${1##*/} load version
    name=${name%%[@-]*}
    if timeout 120 npm install --prefix "$WORK/node" --no-audit --no-fund --ignore-scripts --fetch-retries=1 "$1" >"$WORK/npm.log" 2>&1; then
        version=$(jq -r .version "$WORK/node/node_modules/$name/package.json")
        add_about --arg name "$name" --arg version "$version" '.versions[$name] = $version'
        return
    fi
    case $name in
        postgres) set -- interlock syncguard-postgres ;;
        ioredis) set -- syncguard-redis redlock ;;
        syncguard) set -- syncguard-postgres syncguard-redis ;;
        *) set -- "$name" ;;
    esac
    for load; do UNAVAILABLE[node_$load]="npm could not install $name: $(sed -n 's/^npm \(error\|ERR!\) //p' "$WORK/npm.log" | grep -v '^code' | head -n 1 | cut -c 1-60 | sed 's, - GET .*,,')"; done
}
