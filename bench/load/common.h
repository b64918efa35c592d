/* What the loads of several connections share. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static inline void fail(const char *what, const char *why) {
    fprintf(stderr, "could not %s: %s\n", what, why);
    exit(1);
}
