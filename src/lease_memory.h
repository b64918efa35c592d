// The shared memory of leases: one region, reserved at the start for interlock.max_leases and
// touched as it is used, so that what is reserved costs nothing until then.
//
// It lies in the server's main segment and not in dynamic shared memory, because the postmaster
// itself saves the leases when everybody else is gone (lease_save.cpp).
#pragma once

#include "server.h"

namespace interlock {

// A place in the region, in units of kMemoryUnit; 0: none.
using Ref = uint32;
constexpr size_t kMemoryUnit = 128;

extern int max_leases;

size_t lease_memory_size();

// Lays the region out in `memory`, which is zero and of that size.
void attach_lease_memory(void* memory, bool found);

// A piece of at least `bytes`, at most kLargestPiece; 0 when all is in use. The size class is to
// be given back with it. Its contents are undefined.
constexpr size_t kLargestPiece = 10 * kMemoryUnit;
Ref allocate_piece(size_t bytes, uint8* size_class);
void free_piece(Ref ref, uint8 size_class);

extern char* lease_memory;

template <typename T>
T* at(Ref ref) {
    return reinterpret_cast<T*>(lease_memory + ref * kMemoryUnit);
}

} // namespace interlock
