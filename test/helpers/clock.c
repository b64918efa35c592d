// A library that is loaded before all others. It adds numbers of seconds, which a test changes while the program runs, to the
// system's time and to the time since the boot, and tells of another boot.
//
//   CLOCK_OFFSETS    a file with two numbers of 8 bytes: of the system's time, and of the time since the boot
//   CLOCK_BOOT_ID    a file that is read instead of the kernel's boot_id

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const volatile long *offsets;
static const char *boot_id;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CLOCK_OFFSETS");
    int file = path ? open(path, O_RDONLY) : -1;
    void *found = file < 0 ? MAP_FAILED : mmap(NULL, 2 * sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    if (found != MAP_FAILED)
        offsets = found;
    boot_id = getenv("CLOCK_BOOT_ID");
    if (boot_id)
        boot_id = strdup(boot_id); // a server writes its title where its environment was
}

static long seconds(int which) { return offsets ? offsets[which] : 0; }

int gettimeofday(struct timeval *now, void *zone) {
    static int (*original)(struct timeval *, void *);
    if (!original)
        original = dlsym(RTLD_NEXT, "gettimeofday");
    int result = original(now, zone);
    now->tv_sec += seconds(0);
    return result;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*original)(clockid_t, struct timespec *);
    if (!original)
        original = dlsym(RTLD_NEXT, "clock_gettime");
    int result = original(clock, now);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        now->tv_sec += seconds(0);
    else if (clock == CLOCK_BOOTTIME || clock == CLOCK_MONOTONIC)
        now->tv_sec += seconds(1);
    return result;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result)
        *result = now.tv_sec;
    return now.tv_sec;
}

static int open_other(const char *name, const char *path, int flags, int mode) {
    int (*original)(const char *, int, ...) = dlsym(RTLD_NEXT, name);
    return original(boot_id && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0 ? boot_id : path, flags, mode);
}

#define OPEN(name)                                                                                                                 \
    int name(const char *path, int flags, ...) {                                                                                   \
        va_list rest;                                                                                                              \
        va_start(rest, flags);                                                                                                     \
        int mode = va_arg(rest, int);                                                                                              \
        va_end(rest);                                                                                                              \
        return open_other(#name, path, flags, mode);                                                                               \
    }
OPEN(open)
OPEN(open64)
