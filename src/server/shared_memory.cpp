#include "server/shared_memory.h"

namespace interlock::inline server {

constexpr int kMaxAreas = 8;

static SharedArea areas[kMaxAreas];
static int area_count = 0;

static shmem_request_hook_type previous_request_hook = nullptr;
static shmem_startup_hook_type previous_startup_hook = nullptr;

static void request_areas() {
    if (previous_request_hook != nullptr)
        previous_request_hook();
    for (int i = 0; i < area_count; i++)
        areas[i].request();
}

static void attach_areas() {
    if (previous_startup_hook != nullptr)
        previous_startup_hook();
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    for (int i = 0; i < area_count; i++)
        areas[i].attach();
    LWLockRelease(AddinShmemInitLock);
}

void add_shared_area(SharedArea area) {
    if (area_count == 0) {
        previous_request_hook = shmem_request_hook;
        shmem_request_hook = request_areas;
        previous_startup_hook = shmem_startup_hook;
        shmem_startup_hook = attach_areas;
    }
    Assert(area_count < kMaxAreas);
    areas[area_count++] = area;
}

} // namespace interlock::inline server
