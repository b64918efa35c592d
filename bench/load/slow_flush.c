/* A disk whose flush takes longer, for script/bench --hot-rows: to be loaded before the server by LD_PRELOAD. SLOW_FLUSH is what
 * each fdatasync and fsync takes more, in microseconds. With wal_sync_method = fdatasync no write flushes by itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

typedef int Flush(int file);

static int flush(const char *name, int file) {
    const char *delay = getenv("SLOW_FLUSH");
    Flush *next = (Flush *)dlsym(RTLD_NEXT, name);
    usleep(delay != NULL ? (useconds_t)atoi(delay) : 0);
    return next(file);
}

int fdatasync(int file) { return flush("fdatasync", file); }
int fsync(int file) { return flush("fsync", file); }
