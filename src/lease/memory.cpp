#include "lease/memory.h"

#include "server/role_usage.h"

namespace interlock::lease {

int max_leases = 65536;
char* lease_memory = nullptr;

namespace {

// At the beginning of the region, in a unit that is never allocated, so that no piece is 0.
struct MemoryHeader {
    slock_t lock;
    Ref free;  // units that were freed: a chain
    Ref fresh; // from here on none was ever allocated
    Ref used;
    Ref most[2]; // by access
};

} // namespace

static_assert(sizeof(MemoryHeader) <= kMemoryUnit);

static MemoryHeader* header = nullptr;

static Ref* next_of(void* unit) {
    return reinterpret_cast<Ref*>(static_cast<char*>(unit) + kChainedBytes);
}
static Ref* next_of(Ref unit) { return next_of(at<char>(unit)); }

static Ref units_for_superusers() {
    constexpr Ref kLeast = 128; // however few leases there are
    return Max(superuser_reserve(max_leases) * kUnitsPerLease, kLeast);
}

static Ref take_unit() {
    Ref unit = header->free;
    if (unit == 0)
        return header->fresh++;
    header->free = *next_of(unit);
    return unit;
}

static Ref allocate_shared(Ref count, LeaseAccess access) {
    SpinLockAcquire(&header->lock);
    Ref first = 0;
    if (header->used + count <= header->most[static_cast<int>(access)]) {
        header->used += count;
        first = take_unit();
        for (Ref last = first; --count > 0; last = *next_of(last))
            *next_of(last) = take_unit();
    }
    SpinLockRelease(&header->lock);
    return first;
}

static void free_shared(Ref first, Ref count) {
    Ref last = first;
    for (Ref i = 1; i < count; i++)
        last = *next_of(last);
    SpinLockAcquire(&header->lock);
    *next_of(last) = header->free;
    header->free = first;
    header->used -= count;
    SpinLockRelease(&header->lock);
}

// --- What a process keeps -----------------------------------------------------------------------

// The units of the key and the lease of a short name.
constexpr int kMaxSpare = kUnitsPerLease;
static Ref spare[kMaxSpare];
static int spare_count = 0;

namespace {

enum class Keeping : uint8 { kNotYet, kOn, kOver };

} // namespace

static Keeping keeping = Keeping::kNotYet;

static void give_back_spare(int, Datum) {
    keeping = Keeping::kOver;
    while (spare_count > 0)
        free_shared(spare[--spare_count], 1);
}

// Not in the postmaster: all processes that it forks would share its cached units.
static void begin_keeping() {
    if (keeping != Keeping::kNotYet || !IsUnderPostmaster)
        return;
    on_shmem_exit(give_back_spare, 0);
    keeping = Keeping::kOn;
}

// Not the reserve of superusers. A stale number does no harm.
static bool may_keep() {
    return keeping == Keeping::kOn && spare_count < kMaxSpare &&
           header->used <= header->most[static_cast<int>(LeaseAccess::kOrdinary)];
}

// False: it is not kept.
static bool keep(Ref piece) {
    begin_keeping();
    if (!may_keep())
        return false;
    spare[spare_count++] = piece;
    return true;
}

// --- Texts ---------------------------------------------------------------------------------------

// Runs body(char* part, size_t from, size_t size) for the part of the text in each unit.
template <typename Body>
static void for_each_part(const void* piece, size_t offset, size_t length, Body&& body) {
    auto* unit = static_cast<char*>(const_cast<void*>(piece));
    for (size_t from = 0; from < length; offset = 0) {
        size_t size = Min(kChainedBytes - offset, length - from);
        body(unit + offset, from, size);
        from += size;
        if (from < length)
            unit = at<char>(*next_of(unit));
    }
}

// Units for all leases and for the caches of processes, the reserve of superusers, and the header.
size_t lease_memory_size() {
    size_t leases = static_cast<size_t>(max_leases) * kUnitsPerLease;
    size_t spare_units = static_cast<size_t>(MaxBackends) * kMaxSpare;
    return (1 + leases + spare_units + units_for_superusers()) * kMemoryUnit;
}

void attach_lease_memory(void* memory, bool found) {
    lease_memory = static_cast<char*>(memory);
    header = reinterpret_cast<MemoryHeader*>(lease_memory);
    if (found)
        return;
    *header = {};
    SpinLockInit(&header->lock);
    header->fresh = 1;
    auto all = static_cast<Ref>(lease_memory_size() / kMemoryUnit - 1);
    header->most[static_cast<int>(LeaseAccess::kOrdinary)] = all - units_for_superusers();
    header->most[static_cast<int>(LeaseAccess::kPrivileged)] = all;
}

Ref allocate_piece(size_t bytes, LeaseAccess access) {
    if (bytes <= kMemoryUnit && spare_count > 0)
        return spare[--spare_count];
    return allocate_shared(units_of_piece(bytes), access);
}

void free_piece(Ref piece, size_t bytes) {
    if (bytes > kMemoryUnit || !keep(piece))
        free_shared(piece, units_of_piece(bytes));
}

LeaseMemoryUse lease_memory_use() {
    SpinLockAcquire(&header->lock);
    Ref used = header->used;
    SpinLockRelease(&header->lock);
    return {used * kMemoryUnit,
            header->most[static_cast<int>(LeaseAccess::kOrdinary)] * kMemoryUnit};
}

void write_long_text(void* piece, size_t offset, const char* text, size_t length) {
    for_each_part(piece, offset, length, [text](char* part, size_t from, size_t size) {
        memcpy(part, text + from, size);
    });
}

void read_long_text(const void* piece, size_t offset, char* text, size_t length) {
    for_each_part(piece, offset, length, [text](const char* part, size_t from, size_t size) {
        memcpy(text + from, part, size);
    });
}

bool is_long_text(const void* piece, size_t offset, const char* text, size_t length) {
    bool same = true;
    for_each_part(piece, offset, length, [&](const char* part, size_t from, size_t size) {
        same = same && memcmp(part, text + from, size) == 0;
    });
    return same;
}

} // namespace interlock::lease
