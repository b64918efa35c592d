// The shared memory of leases: one region, reserved at the start for interlock.max_leases and
// touched as it is used, so that what is reserved costs nothing until then.
//
// It lies in the server's main segment and not in dynamic shared memory, because the postmaster
// itself saves the leases when everybody else is gone (lease_save.cpp).
//
// A process keeps the last small pieces that it freed for its next lease: they are in its core's
// cache, and nobody else has to be kept waiting for them.
//
// Pieces of one size share a slab. A slab without pieces goes back and may get another size, so
// that many short keys never use up the memory for long ones.
#pragma once

#include "server.h"

namespace interlock {

// A place in the region, in units of kMemoryUnit; 0: none.
using Ref = uint32;
constexpr size_t kMemoryUnit = 128;

extern int max_leases;

size_t lease_memory_size();
void attach_lease_memory(void* memory, bool found);

// A piece of at least `bytes`, at most kLargestPiece, with undefined contents; 0 when all memory is
// in use.
constexpr size_t kLargestPiece = 10 * kMemoryUnit;
Ref allocate_piece(size_t bytes);
void free_piece(Ref piece);

extern char* lease_memory;

template <typename T>
T* at(Ref ref) {
    return reinterpret_cast<T*>(lease_memory + ref * kMemoryUnit);
}

} // namespace interlock
