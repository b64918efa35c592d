// Counts in shared memory how much of a fixed-size resource each role uses.
//
// A role gets a counter, called a line, at its first use, and keeps it until the server stops. The
// line is one atomic word with the role and the amount. So one step checks the limit and counts the
// use, without a lock. If all lines are taken, further roles share the lines of other roles.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

constexpr int kUsageLines = 1024;
using UsageLine = uint16;
constexpr uint32 kNoLimit = PG_UINT32_MAX;

struct RoleUsage {
    struct alignas(PG_CACHE_LINE_SIZE) {
        pg_atomic_uint64 word; // the role in the high half, the amount in the low half
    } lines[kUsageLines];
};

// Initializes new shared memory.
void initialize_usage(RoleUsage* usage);

// Counts `amount` more for the role. Returns false if the role would then use more than `most`.
// Raises nothing. Any process can subtract the amount later, by subtract_usage() with the returned
// line.
bool add_usage(RoleUsage* usage, Oid role, uint32 amount, uint32 most, UsageLine* line);
void subtract_usage(RoleUsage* usage, UsageLine line, uint32 amount);

// The same as add_usage() for a line whose role is already known. The caller subtracts the amount
// later.
bool add_to_usage(RoleUsage* usage, UsageLine line, uint32 amount, uint32 most);

// The role's line. A role without a line gets a new one.
UsageLine line_of_role(RoleUsage* usage, Oid role);

inline uint64 read_usage(RoleUsage* usage, UsageLine line) {
    return pg_atomic_read_u64(&usage->lines[line].word);
}
inline Oid role_in(uint64 word) { return static_cast<Oid>(word >> 32); }
inline uint32 amount_in(uint64 word) { return static_cast<uint32>(word); }

// The first role that got the line.
inline Oid role_of_line(RoleUsage* usage, UsageLine line) {
    return role_in(read_usage(usage, line));
}

// The name of the role for messages and views. It also has a text for a dropped role.
const char* role_name(Oid role);

// The part of a resource that one role may use. kHalf means half of the resource. Any other setting
// is the limit itself.
constexpr int kHalf = -1;
inline uint32 share_of(int setting, int all) {
    return static_cast<uint32>(setting == kHalf ? all - all / 2 : setting);
}

// How much is reserved for superusers when other roles have used the rest.
inline int superuser_reserve(int all) { return Max(all / 32, 8); }

} // namespace interlock::inline server
