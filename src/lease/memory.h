// The shared memory of leases: one region, reserved at the start for interlock.max_leases and
// touched as it is used, so that unused memory costs nothing.
//
// It lies in the server's main segment and not in dynamic shared memory, because the postmaster
// itself saves the leases when all other processes have exited (lease/clean_restart.cpp).
//
// It is allocated in units of one size. A larger piece is a chain of units, wherever they are. So
// any free unit serves any request, and there is no fragmentation.
//
// A process caches the last units that it freed for its next lease: they are in its core's cache,
// and need no lock.
//
// Some units are reserved for superusers (superuser_reserve).
#pragma once

#include "server/server.h"

namespace interlock::lease {

// A place in the region, in units of kMemoryUnit; 0: none.
using Ref = uint32;
constexpr size_t kMemoryUnit = 128;

// Of a chain: each unit but the last one ends with the place of the next.
constexpr size_t kChainedBytes = kMemoryUnit - sizeof(Ref);

// A lease takes two units: one for its key, one for itself.
constexpr Ref kUnitsPerLease = 2;

// Superusers, and leases from before a restart, are privileged.
enum class LeaseAccess { kOrdinary, kPrivileged };

extern int max_leases;

size_t lease_memory_size();
void attach_lease_memory(void* memory, bool found);

// A piece of that size with undefined contents; 0 when all memory is in use. Only a text at its end
// (below) may reach beyond the first unit.
Ref allocate_piece(size_t bytes, LeaseAccess access);
void free_piece(Ref piece, size_t bytes);

// The units that it takes.
constexpr Ref units_of_piece(size_t bytes) {
    return bytes <= kMemoryUnit ? 1 : static_cast<Ref>((bytes + kChainedBytes - 1) / kChainedBytes);
}

// The bytes of the allocated units, and of all but those for superusers. Processes cache some units
// that they freed.
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

// --- The text at the end of a piece --------------------------------------------------------------

// A text begins in the piece's first unit, at `offset`, and ends with the piece.
void write_long_text(void* piece, size_t offset, const char* text, size_t length);
void read_long_text(const void* piece, size_t offset, char* text, size_t length);
bool is_long_text(const void* piece, size_t offset, const char* text, size_t length);

constexpr bool is_in_one_unit(size_t offset, size_t length) {
    return offset + length <= kMemoryUnit;
}

inline void write_text(void* piece, size_t offset, const char* text, size_t length) {
    if (is_in_one_unit(offset, length))
        memcpy(static_cast<char*>(piece) + offset, text, length);
    else
        write_long_text(piece, offset, text, length);
}

inline void read_text(const void* piece, size_t offset, char* text, size_t length) {
    if (is_in_one_unit(offset, length))
        memcpy(text, static_cast<const char*>(piece) + offset, length);
    else
        read_long_text(piece, offset, text, length);
}

inline bool is_text(const void* piece, size_t offset, const char* text, size_t length) {
    if (is_in_one_unit(offset, length))
        return memcmp(static_cast<const char*>(piece) + offset, text, length) == 0;
    return is_long_text(piece, offset, text, length);
}

} // namespace interlock::lease
