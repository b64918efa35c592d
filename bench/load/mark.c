/* SELECT mark(): callgrind, which runs the server, writes what it has counted since the last mark, and counts on. */
#include <postgres.h>

#include <fmgr.h>
#include <valgrind/callgrind.h>

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(mark);

Datum mark(PG_FUNCTION_ARGS) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_DUMP_STATS;
    PG_RETURN_VOID();
}
