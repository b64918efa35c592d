// The shared memory of leases: one region, reserved at the start for interlock.max_leases and
// touched as it is used, so that what is reserved costs nothing until then.
//
// It lies in the server's main segment and not in dynamic shared memory, because the postmaster
// itself saves the leases when everybody else is gone (lease/save.cpp).
//
// A process keeps the last small pieces that it freed for its next lease: they are in its core's
// cache, and nobody else has to be kept waiting for them.
//
// Pieces of one size share a slab. A slab without pieces goes back and may get another size, so
// that many short keys never use up the memory for long ones. When no slab is left, a small piece
// comes from a slab of larger ones.
//
// A few slabs are there for superusers alone (superuser_reserve): they find memory for a lease
// when all others have used the rest.
#pragma once

#include "server/server.h"

namespace interlock {

// A place in the region, in units of kMemoryUnit; 0: none.
using Ref = uint32;
constexpr size_t kMemoryUnit = 128;

// A lease takes two units: one for its key, one for itself.
constexpr Ref kUnitsPerLease = 2;

// Who asks for memory: superusers, and what was there before a restart, are privileged.
enum class LeaseAccess { kOrdinary, kPrivileged };

extern int max_leases;

size_t lease_memory_size();
void attach_lease_memory(void* memory, bool found);

// A piece of at least `bytes`, at most kLargestPiece, with undefined contents; 0 when all memory is
// in use.
constexpr size_t kLargestPiece = 10 * kMemoryUnit;
Ref allocate_piece(size_t bytes, LeaseAccess access);
void free_piece(Ref piece);

// The units that it takes.
Ref units_of_large_piece(size_t bytes);
inline Ref units_of_piece(size_t bytes) {
    return bytes <= kMemoryUnit ? 1 : units_of_large_piece(bytes);
}

// The bytes of the slabs' units that are given out, and of all but those for superusers. Processes
// keep some pieces that they freed.
struct LeaseMemoryUse {
    uint64 used;
    uint64 most;
};
LeaseMemoryUse lease_memory_use();

extern char* lease_memory;

template <typename T>
T* at(Ref ref) {
    return reinterpret_cast<T*>(lease_memory + ref * kMemoryUnit);
}

} // namespace interlock
