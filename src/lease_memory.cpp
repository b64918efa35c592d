#include "lease_memory.h"

namespace interlock {

int max_leases = 65536;
char* lease_memory = nullptr;

namespace {

// Keys and holders are short as a rule.
constexpr int kSizes = 4;
constexpr Ref kUnits[kSizes] = {1, 2, 4, 10};

// A lease takes two units: one for its key, one for itself.
constexpr Ref kUnitsPerLease = 2;

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
};
static_assert(sizeof(Slab) <= kMemoryUnit);

struct MemoryHeader {
    slock_t lock;
    Ref free_slab;
    Ref fresh_slab; // from here on none was ever used
    Ref end;
    Ref with_room[kSizes]; // slabs that have a free piece
};

MemoryHeader* header = nullptr;

Slab* slab_at(Ref ref) { return at<Slab>(ref); }

Ref slab_of(Ref piece) { return piece - piece % kSlabUnits; }

bool has_room(Ref ref) {
    const Slab& slab = *slab_at(ref);
    return slab.free != 0 || slab.fresh + kUnits[slab.size] <= ref + kSlabUnits;
}

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

// A slab for pieces of that size; 0: there is none.
Ref new_slab(uint16 size) {
    Ref ref = header->free_slab;
    if (ref != 0) {
        unlink(&header->free_slab, ref);
    } else {
        if (header->end - header->fresh_slab < kSlabUnits)
            return 0;
        ref = header->fresh_slab;
        header->fresh_slab += kSlabUnits;
    }
    *slab_at(ref) = {0, 0, 0, ref + 1, 0, size};
    link(&header->with_room[size], ref);
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
    if (!has_room(ref))
        unlink(&header->with_room[slab->size], ref);
    return piece;
}

Ref allocate_shared(uint16 size) {
    SpinLockAcquire(&header->lock);
    Ref slab = header->with_room[size];
    if (slab == 0)
        slab = new_slab(size);
    Ref piece = slab == 0 ? 0 : take_piece(slab);
    SpinLockRelease(&header->lock);
    return piece;
}

void free_shared(Ref piece) {
    Ref ref = slab_of(piece);
    Slab* slab = slab_at(ref);
    SpinLockAcquire(&header->lock);
    if (!has_room(ref))
        link(&header->with_room[slab->size], ref);
    *at<Ref>(piece) = slab->free;
    slab->free = piece;
    if (--slab->used == 0) {
        unlink(&header->with_room[slab->size], ref);
        link(&header->free_slab, ref);
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

// As many slabs as one-unit pieces for all leases and what processes may keep need, and one that
// keeps 0 free.
size_t lease_memory_size() {
    size_t leases = static_cast<size_t>(max_leases) * kUnitsPerLease;
    size_t kept_pieces = static_cast<size_t>(MaxBackends) * kMostKept;
    size_t slabs = (leases + kept_pieces) / (kSlabUnits - 1) + 2;
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

Ref allocate_piece(size_t bytes) {
    uint16 size = 0;
    while (kUnits[size] * kMemoryUnit < bytes)
        size++;
    return size == 0 && kept_count > 0 ? kept[--kept_count] : allocate_shared(size);
}

void free_piece(Ref piece) {
    if (slab_at(slab_of(piece))->size != 0 || !keep(piece))
        free_shared(piece);
}

} // namespace interlock
