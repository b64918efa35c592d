#include "lease_memory.h"

namespace interlock {

int max_leases = 65536;
char* lease_memory = nullptr;

namespace {

// Keys and holders are short as a rule. A piece that is freed stays in its class.
constexpr int kClasses = 4;
constexpr Ref kUnits[kClasses] = {1, 2, 4, 10};

// A lease takes two units: one for its key, one for itself.
constexpr size_t kUnitsPerLease = 2;

// At the start of the region.
struct MemoryHeader {
    slock_t lock;
    Ref end;  // units in the region
    Ref used; // units that were ever handed out
    Ref free[kClasses];
};
static_assert(sizeof(MemoryHeader) <= kMemoryUnit);

MemoryHeader* header() { return reinterpret_cast<MemoryHeader*>(lease_memory); }

// A free piece starts with the next one.
Ref take_free(uint8 size_class) {
    Ref ref = header()->free[size_class];
    if (ref != 0)
        header()->free[size_class] = *at<Ref>(ref);
    return ref;
}

Ref take_new(uint8 size_class) {
    Ref ref = header()->used;
    if (header()->end - ref < kUnits[size_class])
        return 0;
    header()->used += kUnits[size_class];
    return ref;
}

} // namespace

size_t lease_memory_size() {
    return (static_cast<size_t>(max_leases) * kUnitsPerLease + 1) * kMemoryUnit;
}

void attach_lease_memory(void* memory, bool found) {
    lease_memory = static_cast<char*>(memory);
    if (found)
        return;
    SpinLockInit(&header()->lock);
    header()->end = static_cast<Ref>(lease_memory_size() / kMemoryUnit);
    header()->used = 1;
    for (Ref& free : header()->free)
        free = 0;
}

Ref allocate_piece(size_t bytes, uint8* size_class) {
    uint8 wanted = 0;
    while (kUnits[wanted] * kMemoryUnit < bytes)
        wanted++;
    SpinLockAcquire(&header()->lock);
    *size_class = wanted;
    Ref ref = take_free(wanted);
    if (ref == 0)
        ref = take_new(wanted);
    while (ref == 0 && *size_class + 1 < kClasses)
        ref = take_free(++*size_class);
    SpinLockRelease(&header()->lock);
    return ref;
}

void free_piece(Ref ref, uint8 size_class) {
    SpinLockAcquire(&header()->lock);
    *at<Ref>(ref) = header()->free[size_class];
    header()->free[size_class] = ref;
    SpinLockRelease(&header()->lock);
}

} // namespace interlock
