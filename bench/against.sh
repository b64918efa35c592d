# against.sh: another commit, on a server of its own. To be sourced by script/bench, for script/bench --against COMMIT.
#
#   set_up_against         builds the commit with its own Makefile, and stages a server with it
#   against COMMAND...     runs a function with the workspace and the server of that commit
#   on_both COMMAND...     runs it with ours, and with that of the commit if there is one
#
# Both servers have the same settings and tables, from the same scripts: the commit must know the functions they call.

set_up_against() {
    as_server mkdir "$WORK/against"
    against build_commit || { show "$WORK/against/build.log" && die "could not build $AGAINST"; }
    against stage_server
    add_about --arg commit "$AGAINST" '.versions.against = $commit'
}

# Warnings are no errors here: the commit may be older than the compiler.
build_commit() {
    local BUILD_FLAGS=-Wno-error
    build_in "$(cache_home)/$PG_VERSION-$AGAINST_HASH" unpack_commit
}

# unpack_commit DIR: files have the time of the commit, so that what is built there stays.
unpack_commit() { git -C "$ROOT" archive "$AGAINST_HASH" | tar -x -C "$1"; }

against() {
    local WORK=$WORK/against OUT=$OUT/against PATH=$PATH SERVER_BIN SERVER_CONFIG CLUSTER_RUNS=
    local -x PGHOST=$WORK/socket MAKEFLAGS="${MAKEFLAGS:-} with_llvm=no" # the server's clang may be missing
    SERVER_BIN=$WORK/server$("$PG_CONFIG" --bindir)
    SERVER_CONFIG=$SERVER_BIN/pg_config
    [ ! -e "$WORK/data/postmaster.pid" ] || CLUSTER_RUNS=1
    "$@"
}

on_both() {
    "$@"
    [ -z "$AGAINST" ] || against "$@"
}

stop_against() { [ ! -e "${WORK:-}/against/data/postmaster.pid" ] || against stop_cluster; }
