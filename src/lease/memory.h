// The shared memory of leases. It is one region. Its size is reserved at the start, for
// interlock.max_leases. Memory is touched only when it is used, so unused memory costs nothing.
//
// It is in the server's main segment and not in dynamic shared memory, because the postmaster
// itself saves the leases after all other processes have exited (lease/clean_restart.cpp).
//
// It is allocated in units of one size. A larger piece is a chain of any units. So every free unit
// serves every request, and there is no fragmentation.
//
// A process keeps the last units that it freed for its next lease. They are in the cache of its
// core, and need no lock.
//
// Some units are reserved for superusers (superuser_reserve()).
#pragma once

#include "server/server.h"

namespace interlock::lease {

// A place in the region, in units of kMemoryUnit. 0: no place.
using Ref = uint32;
constexpr size_t kMemoryUnit = 128;

// In a chain each unit except the last ends with the place of the next unit.
constexpr size_t kChainedBytes = kMemoryUnit - sizeof(Ref);

// A lease takes two units: one for its key, one for itself.
constexpr Ref kUnitsPerLease = 2;

// Superusers, and leases from before a restart, are privileged.
enum class LeaseAccess { kOrdinary, kPrivileged };

extern int max_leases;

size_t lease_memory_size();
void attach_lease_memory(void* memory, bool found);

// A piece of that size with undefined contents. 0 if all memory is in use. Only a text at the end
// of the piece (below) may reach beyond the first unit.
Ref allocate_piece(size_t bytes, LeaseAccess access);
void free_piece(Ref piece, size_t bytes);

// The number of units in a piece.
constexpr Ref units_of_piece(size_t bytes) {
    return bytes <= kMemoryUnit ? 1 : static_cast<Ref>((bytes + kChainedBytes - 1) / kChainedBytes);
}

// How many bytes are allocated and how many there are, without those for superusers. Units that
// processes keep count as allocated.
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
