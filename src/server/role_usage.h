// How much of a resource of fixed size each role uses, counted in shared memory.
//
// A role gets a line when it uses some for the first time, and keeps it until the server stops. The
// line is one atomic word with the role and what it uses, so that a limit is checked and the use
// counted in one step, without a lock. When all lines are taken, further roles share the lines of
// others.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

constexpr int kUsageLines = 1024;
using UsageLine = uint16;
constexpr uint32 kNoLimit = PG_UINT32_MAX;

struct RoleUsage {
    struct alignas(PG_CACHE_LINE_SIZE) {
        pg_atomic_uint64 word; // the role in the high half, what it uses in the low one
    } lines[kUsageLines];
};

// In new shared memory.
void initialize_usage(RoleUsage* usage);

// Counts `amount` more for the role unless it would then use more than `most`: false. Does not
// raise; the result is given back with subtract_usage and the line, by any process.
bool add_usage(RoleUsage* usage, Oid role, uint32 amount, uint32 most, UsageLine* line);
void subtract_usage(RoleUsage* usage, UsageLine line, uint32 amount);

// The same as add_usage for a line that counts something already, which the caller gives back.
bool add_to_usage(RoleUsage* usage, UsageLine line, uint32 amount, uint32 most);

// The role's line, or a new one.
UsageLine line_of_role(RoleUsage* usage, Oid role);

inline uint64 read_usage(RoleUsage* usage, UsageLine line) {
    return pg_atomic_read_u64(&usage->lines[line].word);
}
inline Oid role_in(uint64 word) { return static_cast<Oid>(word >> 32); }
inline uint32 amount_in(uint64 word) { return static_cast<uint32>(word); }

// The role that got the line first.
inline Oid role_of_line(RoleUsage* usage, UsageLine line) {
    return role_in(read_usage(usage, line));
}

// As messages and views show it: of a role that was dropped, too.
const char* role_name(Oid role);

// The part of a resource that one role may use: what the setting says, and half of all when it is
// kHalf.
constexpr int kHalf = -1;
inline uint32 share_of(int setting, int all) {
    return static_cast<uint32>(setting == kHalf ? all - all / 2 : setting);
}

// The reserve for superusers when all others have used the rest.
inline int superuser_reserve(int all) { return Max(all / 32, 8); }

} // namespace interlock::inline server
