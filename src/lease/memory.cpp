#include "lease/memory.h"

#include "server/role_usage.h"

namespace interlock {

int max_leases = 65536;
char* lease_memory = nullptr;

namespace {

// Keys and holders are short as a rule.
constexpr int kSizes = 4;
constexpr Ref kUnits[kSizes] = {1, 2, 4, 10};

// The first unit of a slab describes it; the first unit of the region is never given out, so that
// no piece is 0.
constexpr Ref kSlabUnits = 64;

struct Slab {
    Ref next; // among the free ones, or those of its size with a free piece
    Ref previous;
    Ref free;  // pieces that were given back, each starts with the next
    Ref fresh; // from here on none was ever given out
    uint16 used;
    uint16 size;
    bool reserved; // for superusers
};
static_assert(sizeof(Slab) <= kMemoryUnit);

struct MemoryHeader {
    slock_t lock;
    Ref free_slab;
    Ref fresh_slab; // from here on none was ever used
    Ref end;
    Ref ordinary_slabs;       // in use, but for reserved ones
    Ref used;                 // units
    Ref with_room[2][kSizes]; // slabs that have a free piece: ordinary ones, reserved ones
};

MemoryHeader* header = nullptr;

uint16 size_of_piece(size_t bytes) {
    uint16 size = 0;
    while (kUnits[size] * kMemoryUnit < bytes)
        size++;
    return size;
}

Slab* slab_at(Ref ref) { return at<Slab>(ref); }

Ref slab_of(Ref piece) { return piece - piece % kSlabUnits; }

bool has_room(Ref ref) {
    const Slab& slab = *slab_at(ref);
    return slab.free != 0 || slab.fresh + kUnits[slab.size] <= ref + kSlabUnits;
}

Ref* slabs_with_room(const Slab& slab) { return &header->with_room[slab.reserved][slab.size]; }

void link(Ref* list, Ref ref) {
    slab_at(ref)->next = *list;
    slab_at(ref)->previous = 0;
    if (*list != 0)
        slab_at(*list)->previous = ref;
    *list = ref;
}

void unlink(Ref* list, Ref ref) {
    Slab* slab = slab_at(ref);
    if (slab->next != 0)
        slab_at(slab->next)->previous = slab->previous;
    *(slab->previous != 0 ? &slab_at(slab->previous)->next : list) = slab->next;
}

Ref reserved_slabs() {
    constexpr int kLeasesPerSlab = (kSlabUnits - 1) / kUnitsPerLease;
    return Max(superuser_reserve(max_leases) / kLeasesPerSlab, kSizes);
}

Ref ordinary_slabs() { return header->end / kSlabUnits - 1 - reserved_slabs(); }

// A slab for pieces of that size; 0: there is none.
Ref new_slab(uint16 size, bool reserved) {
    if (!reserved && header->ordinary_slabs >= ordinary_slabs())
        return 0;
    Ref ref = header->free_slab;
    if (ref != 0) {
        unlink(&header->free_slab, ref);
    } else {
        if (header->end - header->fresh_slab < kSlabUnits)
            return 0;
        ref = header->fresh_slab;
        header->fresh_slab += kSlabUnits;
    }
    *slab_at(ref) = {0, 0, 0, ref + 1, 0, size, reserved};
    link(slabs_with_room(*slab_at(ref)), ref);
    header->ordinary_slabs += !reserved;
    return ref;
}

// A slab with a free piece of that size; when there is no other any more, of a larger one.
pg_noinline Ref slab_for(uint16 size, bool reserved) {
    Ref ref = header->with_room[reserved][size];
    if (ref == 0)
        ref = new_slab(size, reserved);
    while (ref == 0 && ++size < kSizes)
        ref = header->with_room[reserved][size];
    return ref;
}

Ref take_piece(Ref ref) {
    Slab* slab = slab_at(ref);
    Ref piece = slab->free;
    if (piece != 0) {
        slab->free = *at<Ref>(piece);
    } else {
        piece = slab->fresh;
        slab->fresh += kUnits[slab->size];
    }
    slab->used++;
    header->used += kUnits[slab->size];
    if (!has_room(ref))
        unlink(slabs_with_room(*slab), ref);
    return piece;
}

Ref allocate_shared(uint16 size, LeaseAccess access) {
    SpinLockAcquire(&header->lock);
    Ref slab = header->with_room[false][size];
    if (slab == 0)
        slab = slab_for(size, false);
    if (slab == 0 && access == LeaseAccess::kPrivileged)
        slab = slab_for(size, true);
    Ref piece = slab == 0 ? 0 : take_piece(slab);
    SpinLockRelease(&header->lock);
    return piece;
}

void free_shared(Ref piece) {
    Ref ref = slab_of(piece);
    Slab* slab = slab_at(ref);
    SpinLockAcquire(&header->lock);
    if (!has_room(ref))
        link(slabs_with_room(*slab), ref);
    header->used -= kUnits[slab->size];
    *at<Ref>(piece) = slab->free;
    slab->free = piece;
    if (--slab->used == 0) {
        unlink(slabs_with_room(*slab), ref);
        link(&header->free_slab, ref);
        header->ordinary_slabs -= !slab->reserved;
    }
    SpinLockRelease(&header->lock);
}

// --- What a process keeps -----------------------------------------------------------------------

// Of the smallest size: what the key and the lease of a short name take.
constexpr int kMostKept = kUnitsPerLease;
Ref kept[kMostKept];
int kept_count = 0;

enum class Keeping : uint8 { kNotYet, kOn, kOver };
Keeping keeping = Keeping::kNotYet;

void give_back_kept(int, Datum) {
    keeping = Keeping::kOver;
    while (kept_count > 0)
        free_shared(kept[--kept_count]);
}

// Processes that the postmaster forks would all have what it keeps.
void begin_keeping() {
    if (keeping != Keeping::kNotYet || !IsUnderPostmaster)
        return;
    on_shmem_exit(give_back_kept, 0);
    keeping = Keeping::kOn;
}

bool may_keep() { return keeping == Keeping::kOn && kept_count < kMostKept; }

// False: it is not kept.
bool keep(Ref piece) {
    begin_keeping();
    if (!may_keep())
        return false;
    kept[kept_count++] = piece;
    return true;
}

} // namespace

// As many slabs as one-unit pieces for all leases and what processes may keep need, those for
// superusers, and one that keeps 0 free.
size_t lease_memory_size() {
    size_t leases = static_cast<size_t>(max_leases) * kUnitsPerLease;
    size_t kept_pieces = static_cast<size_t>(MaxBackends) * kMostKept;
    size_t slabs = (leases + kept_pieces) / (kSlabUnits - 1) + 2 + reserved_slabs();
    return slabs * kSlabUnits * kMemoryUnit;
}

void attach_lease_memory(void* memory, bool found) {
    lease_memory = static_cast<char*>(memory);
    header = reinterpret_cast<MemoryHeader*>(lease_memory);
    if (found)
        return;
    *header = {};
    SpinLockInit(&header->lock);
    header->fresh_slab = kSlabUnits;
    header->end = static_cast<Ref>(lease_memory_size() / kMemoryUnit);
}

Ref allocate_piece(size_t bytes, LeaseAccess access) {
    uint16 size = size_of_piece(bytes);
    return size == 0 && kept_count > 0 ? kept[--kept_count] : allocate_shared(size, access);
}

void free_piece(Ref piece) {
    const Slab& slab = *slab_at(slab_of(piece));
    if (slab.size != 0 || slab.reserved || !keep(piece))
        free_shared(piece);
}

Ref units_of_large_piece(size_t bytes) { return kUnits[size_of_piece(bytes)]; }

LeaseMemoryUse lease_memory_use() {
    SpinLockAcquire(&header->lock);
    Ref used = header->used;
    SpinLockRelease(&header->lock);
    uint64 most = static_cast<uint64>(ordinary_slabs()) * (kSlabUnits - 1);
    return {used * kMemoryUnit, most * kMemoryUnit};
}

} // namespace interlock
