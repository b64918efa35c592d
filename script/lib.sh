# lib.sh: what script/test, script/demo and script/bench share. To be sourced.
#
# Nothing here touches the installed server. The extension is built in a cache
# of its own and installed into a staged copy of the server, whose programs
# find their files relative to themselves; private clusters run from there.
#
#   need_packages NAME...      install what is missing
#   unpack_package DIR NAME    unpack it and what it needs into a directory
#   find_server                sets PG_CONFIG, PG_VERSION, PG_MAJOR
#   need_node                  Node.js and npm
#   stage_program DIR NAME...  a program for Node.js in WORK/program
#   make_workspace             sets WORK, removed at exit with all it runs
#   build_extension            compiles into WORK/tree, with BUILD_FLAGS
#   stage_server               sets SERVER_BIN and SERVER_CONFIG
#   start_cluster [SETTING...] sets PGHOST, PGPORT, PGUSER; log in WORK/server.log
#   as_server COMMAND...       runs a command as a user that may run servers
#   cache_home                 the directory of everything that is kept between runs
#   step NAME COMMAND...       a test that is a command, as TAP with its time; its output explains a failure

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
EXTENSION=pg_interlock
BUILD_FLAGS=

# --- Output ------------------------------------------------------------------

if [ -t 1 ]; then
    BOLD=$'\e[1m' RED=$'\e[31m' GREEN=$'\e[32m' DIM=$'\e[2m' PLAIN=$'\e[0m'
else
    BOLD='' RED='' GREEN='' DIM='' PLAIN=''
fi

PASSED=0
FAILED=0
FAILURES=() # their names

heading() { printf '\n%s%s%s\n' "$BOLD" "$*" "$PLAIN"; }
note() { printf '  %s%s%s\n' "$DIM" "$*" "$PLAIN"; }

# result_line COLOUR WORD NAME [REMARK]
result_line() { printf '  %s%-7s%s%-50s %s%s%s\n' "$1" "$2" "$PLAIN" "$3" "$DIM" "${4:-}" "$PLAIN"; }

# passed NAME [REMARK] [COUNT] and failed NAME [REMARK] [COUNT] count tests.
passed() {
    PASSED=$((PASSED + ${3:-1}))
    result_line "$GREEN" ok "$1" "${2:-}"
}
failed() {
    FAILED=$((FAILED + ${3:-1}))
    FAILURES+=("$1")
    result_line "$RED" FAILED "$1" "${2:-}"
}
skipped() { result_line "$DIM" skip "$1" "${2:-}"; }

# show FILE [LINES]: the end of a file, indented, to explain a failure.
show() { [ ! -r "$1" ] || tail -n "${2:-60}" "$1" | sed 's/^/         /'; }

# step NAME COMMAND...: fails as the command does. A function joins its commands by &&, as set -e does not count here.
step() {
    local name=$1 start=$EPOCHREALTIME
    shift
    STEPS=$((${STEPS:-0} + 1))
    if "$@" >"$WORK/step.out" 2>&1; then
        echo "ok $STEPS - $name  $(((${EPOCHREALTIME/./} - ${start/./}) / 1000)) ms"
    else
        echo "not ok $STEPS - $name"
        explain "$WORK/step.out" 60
        return 1
    fi
}

# explain FILE LINES: the end of a file as the reason of a failure, for script/test.
explain() { tail -n "$2" "$1" 2>/dev/null | sed 's/^/|/'; }

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 2
}

# seconds_since START: elapsed time, for people. START is an $EPOCHREALTIME.
seconds_since() {
    local micros=$((${EPOCHREALTIME/./} - ${1/./}))
    printf '%d.%d s' $((micros / 1000000)) $((micros / 100000 % 10))
}

# --- Packages ----------------------------------------------------------------

# need_packages NAME...: installs the packages that are not there yet.
need_packages() {
    local missing=() name log=${TMPDIR:-/tmp}/apt.$$.log
    for name; do
        dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null | grep -qx installed ||
            missing+=("$name")
    done
    [ ${#missing[@]} -eq 0 ] && return
    [ "$(id -u)" = 0 ] || die "please install as root: apt-get install ${missing[*]}"
    note "installing ${missing[*]}"
    {
        update_lists || true
        DEBIAN_FRONTEND=noninteractive apt-get install -y -o DPkg::Lock::Timeout=600 --no-install-recommends "${missing[@]}"
    } >"$log" 2>&1 || {
        show "$log" 20
        rm -f "$log"
        die "could not install ${missing[*]}"
    }
    rm -f "$log"
}

# update_lists: of the packages that there are. A machine that has just started may update them itself: then it waits, for ten minutes.
update_lists() {
    local said tries
    for tries in {1..120}; do
        if said=$(LC_ALL=C apt-get update 2>&1); then break; fi
        echo "$said"
        [[ $said == *"Could not get lock"* && $tries -lt 120 ]] || return 1
        sleep 5
    done
}

# unpack_package DIR NAME: the package, and what it needs that is not
# installed, as plain files: nothing is configured and no service started.
unpack_package() {
    local file fetch=(apt-get install --yes --no-install-recommends --download-only
        -o "Dir::Cache::archives=$1" "$2")
    mkdir -p "$1/partial"
    "${fetch[@]}" || { update_lists && "${fetch[@]}"; } || return
    for file in "$1"/*.deb; do dpkg -x "$file" "$1" || return; done
}

# packages_for MAJOR [build]: what building and testing against that server takes, or building alone.
packages_for() {
    echo "postgresql-$1 postgresql-server-dev-$1 g++ make"
    [ "${2:-}" = build ] || echo "postgresql-$1-pgtap libtap-parser-sourcehandler-pgtap-perl libipc-run-perl cmake patch"
}

# find_server [build [PACKAGE...]]: the server of PG_CONFIG or of the PATH, else Debian's default. With `build`, what tests take is not
# installed. On a machine without a server, PACKAGEs are installed together with it.
find_server() {
    PG_CONFIG=${PG_CONFIG:-$(command -v pg_config || true)}
    if [ -z "$PG_CONFIG" ]; then
        need_packages postgresql postgresql-server-dev-all g++ make "${@:2}"
        PG_CONFIG=$(command -v pg_config) || die "could not find pg_config"
    fi
    PG_VERSION=$("$PG_CONFIG" --version | awk '{print $2}')
    PG_MAJOR=${PG_VERSION%%[!0-9]*}
    if [ "$("$PG_CONFIG" --bindir)" = "/usr/lib/postgresql/$PG_MAJOR/bin" ]; then
        # shellcheck disable=SC2046
        need_packages $(packages_for "$PG_MAJOR" "${1:-}")
    fi
}

# need_node: Node.js 20 or later with npm. Where the release of Debian has an older one, such as bookworm, npm installs a newer one for
# us alone.
need_node() {
    local kept
    # shellcheck disable=SC2046
    need_packages $(node_packages)
    if node_suffices; then return; fi
    kept=$(cache_home)/node-22
    mkdir -p "$kept"
    note "installing Node.js 22 into $kept, as $(command -v node) is $(node --version)"
    npm install --prefix "$kept" --no-audit --no-fund --loglevel=error node@22 || die "could not install Node.js 22"
    PATH=$kept/node_modules/node/bin:$PATH
    node_suffices || die "needs Node.js 20 or later, but $(command -v node) is $(node --version)"
}

node_packages() { command -v npm >/dev/null || echo nodejs npm; }

# stage_program DIRECTORY [PACKAGE...]: copies a program for Node.js to WORK/program, with the package of clients/node, which is
# compiled for it, and packages of npm. The output of npm goes to WORK/npm.log.
stage_program() {
    cp -r "$1" "$WORK/program"
    (
        archive=$("$ROOT/script/node-package" "$WORK") && cd "$WORK/program" &&
            npm install --no-save --no-audit --no-fund --loglevel=error "$archive" "${@:2}"
    ) >"$WORK/npm.log" 2>&1 || { show "$WORK/npm.log" && return 1; }
}

node_suffices() {
    local version
    version=$(node --version 2>/dev/null) && [ "$(cut -d. -f1 <<<"${version#v}")" -ge 20 ]
}

server_headers() { "$PG_CONFIG" --includedir-server; }

# --- Workspace and build -----------------------------------------------------

# as_server: servers refuse to run as root; root hands over to their own user.
as_server() {
    if [ "$(id -u)" = 0 ]; then
        (cd "$WORK" && HOME=$WORK exec runuser -u postgres -- "$@")
    else
        "$@"
    fi
}

make_workspace() {
    WORK=$(mktemp -d "${TMPDIR:-/tmp}/interlock.XXXXXX")
    export TMPDIR=$WORK
    trap leave_workspace EXIT
    trap 'exit 130' INT TERM
    [ "$(id -u)" != 0 ] || chown postgres: "$WORK"
}

leave_workspace() {
    stop_cluster
    if [ -n "${KEEP:-}" ]; then
        echo "kept: $WORK"
    else
        rm -rf "$WORK"
    fi
}

# source_files: every file of the tree that is not built, relative to ROOT.
source_files() {
    (cd "$ROOT" && find . -name .git -prune -o -path './build*' -prune -o -path './debian/postgresql-*' -prune \
        -o -path ./debian/.debhelper -prune -o -path ./results -prune \
        -o -name __pycache__ -prune -o -name .mypy_cache -prune -o -path ./.pch -prune -o -path ./.sql -prune -o -path ./output_iso -prune -o -path ./tmp_check -prune -o -type f ! -name '*.o' ! -name '*.bc' \
        ! -name '*.d' ! -name '*.so' ! -name .boundary ! -name 'regression.*' ! -name 'pg_interlock-*.zip' -print)
}

# sync_tree DIR: makes the sources in DIR equal to ours and leaves what is built
# there. Only files that differ are written, so make rebuilds only those.
sync_tree() {
    local dir=$1 file
    mkdir -p "$dir"
    while read -r file; do
        cmp -s "$ROOT/$file" "$dir/$file" || {
            mkdir -p "$(dirname "$dir/$file")"
            cp "$ROOT/$file" "$dir/$file"
        }
        [ ! -x "$ROOT/$file" ] || chmod +x "$dir/$file"
    done < <(source_files)
    comm -13 <(source_files | sort) <(ROOT=$dir source_files | sort) |
        while read -r file; do rm "$dir/$file"; done
}

cache_home() {
    local home=${XDG_CACHE_HOME:-}
    [ -n "$home" ] || { [ "$(id -u)" = 0 ] && home=/var/cache || home=$HOME/.cache; }
    echo "$home/$EXTENSION"
}

# version_of DIRECTORY: the version that the control file there says.
version_of() { sed -n "s/^default_version *= *'\(.*\)'/\1/p" "$1/$EXTENSION.control"; }

# build_extension: compiles in a cache, warnings being errors, and copies the
# result to WORK/tree. The output of make goes to WORK/build.log.
build_extension() {
    build_in "$(cache_home)/$PG_VERSION-$(cksum <<<"$ROOT${BUILD_FLAGS:+ $PG_CONFIG $BUILD_FLAGS}" | cut -d' ' -f1)" sync_tree
}

# build_in CACHE FILL: the same, of the sources that FILL DIR writes.
build_in() {
    local cache=$1 fill=$2
    mkdir -p "$cache"
    (
        flock 9
        "$fill" "$cache"
        make -C "$cache" -kj"$(nproc)" PG_CONFIG="$PG_CONFIG" COPT="-Werror $BUILD_FLAGS" &&
            cp -a "$cache" "$WORK/tree"
    ) 9>"$cache.lock" >"$WORK/build.log" 2>&1 || return 1
    [ "$(id -u)" != 0 ] || chown -R postgres: "$WORK/tree"
}

# stage_server: a copy of the server with the extension in it. Programs are
# copied, as they look for their files from where they are; the rest is linked.
stage_server() {
    local stage=$WORK/server dir
    SERVER_BIN=$stage$("$PG_CONFIG" --bindir)
    SERVER_CONFIG=$SERVER_BIN/pg_config
    mkdir -p "$SERVER_BIN"
    cp -a "$("$PG_CONFIG" --bindir)/." "$SERVER_BIN"
    [ -x "$SERVER_CONFIG" ] || cp "$(readlink -f "$PG_CONFIG")" "$SERVER_CONFIG"
    for dir in "$("$PG_CONFIG" --sharedir)" "$("$PG_CONFIG" --pkglibdir)"; do
        mkdir -p "$stage$dir"
        cp -as "$dir/." "$stage$dir"
        find "$stage$dir" -name "$EXTENSION*" -prune -exec rm -rf {} +
    done
    dir=$(server_headers)
    mkdir -p "$stage$(dirname "$dir")"
    ln -s "$dir" "$stage$dir"
    make -C "$WORK/tree" PG_CONFIG="$SERVER_CONFIG" COPT="-Werror $BUILD_FLAGS" install >"$WORK/install.log" 2>&1 || {
        show "$WORK/install.log"
        return 1
    }
    # Tests install other versions.
    [ "$(id -u)" != 0 ] || chown postgres: "$stage$("$PG_CONFIG" --sharedir)/extension"
    PATH=$SERVER_BIN:$PATH
}

# --- Cluster -----------------------------------------------------------------

# start_cluster [SETTING...]: a throw-away server that only its socket reaches.
# Settings are lines of postgresql.conf. Fast and unsafe: nothing here matters
# after the run. SERVER_PROGRAM may be a wrapper of the server.
start_cluster() {
    export PGHOST=$WORK/socket PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
    as_server mkdir -p "$PGHOST"
    as_server "$SERVER_BIN/initdb" -D "$WORK/data" -U postgres -A trust -E UTF8 --no-locale \
        --no-sync >"$WORK/initdb.log" 2>&1 || {
        show "$WORK/initdb.log"
        die "could not create a cluster"
    }
    {
        echo "listen_addresses = ''"
        echo "unix_socket_directories = '$PGHOST'"
        echo "shared_preload_libraries = '$EXTENSION'"
        echo "fsync = off"
        printf '%s\n' "$@"
    } >>"$WORK/data/postgresql.conf"
    CLUSTER_RUNS=1
    as_server "$SERVER_BIN/pg_ctl" -D "$WORK/data" -l "$WORK/server.log" -w start \
        -p "${SERVER_PROGRAM:-$SERVER_BIN/postgres}" >"$WORK/start.log" 2>&1 || {
        show "$WORK/server.log"
        die "could not start a cluster"
    }
}

stop_cluster() {
    [ -n "${CLUSTER_RUNS:-}" ] || return 0
    CLUSTER_RUNS=
    as_server "$SERVER_BIN/pg_ctl" -D "$WORK/data" -m fast -w stop >/dev/null 2>&1 ||
        as_server "$SERVER_BIN/pg_ctl" -D "$WORK/data" -m immediate -w stop >/dev/null 2>&1 || true
}
