#include "server/role_usage.h"

namespace interlock {

namespace {

constexpr UsageLine kNone = kUsageLines;

UsageLine first_of_set(Oid role) {
    uint32 set = murmurhash32(role) % kUsageSets;
    return static_cast<UsageLine>(1 + set * kUsageWays);
}

uint64 word_of(Oid role, uint32 amount) { return static_cast<uint64>(role) << 32 | amount; }

UsageLine find_line(RoleUsage* usage, Oid role) {
    UsageLine first = first_of_set(role);
    for (UsageLine line = first; line < first + kUsageWays; line++)
        if (role_of_line(usage, line) == role)
            return line;
    return kNone;
}

// Gives the role a line that counts nothing. A role has one line at most: lines change hands under
// the lock only.
UsageLine make_line(RoleUsage* usage, Oid role) {
    UsageLine first = first_of_set(role);
    SpinLockAcquire(&usage->lock);
    UsageLine line = find_line(usage, role);
    for (UsageLine i = first; line == kNone && i < first + kUsageWays; i++) {
        uint64 word = read_usage(usage, i);
        if (amount_in(word) == 0 &&
            pg_atomic_compare_exchange_u64(&usage->lines[i].word, &word, word_of(role, 0)))
            line = i;
    }
    SpinLockRelease(&usage->lock);
    return line == kNone ? kSharedLine : line;
}

enum class Added { kYes, kOverLimit, kOtherRole };

Added add_to_line(RoleUsage* usage, UsageLine line, Oid role, uint32 amount, uint32 most) {
    uint64 word = read_usage(usage, line);
    while (role_in(word) == role) {
        if (amount > most || amount_in(word) > most - amount)
            return Added::kOverLimit;
        if (pg_atomic_compare_exchange_u64(&usage->lines[line].word, &word, word + amount))
            return Added::kYes;
    }
    return Added::kOtherRole;
}

} // namespace

void initialize_usage(RoleUsage* usage) {
    SpinLockInit(&usage->lock);
    for (auto& line : usage->lines)
        pg_atomic_init_u64(&line.word, 0);
}

bool add_usage(RoleUsage* usage, Oid role, uint32 amount, uint32 most, UsageLine* line) {
    for (;;) {
        *line = find_line(usage, role);
        if (*line == kNone)
            *line = make_line(usage, role);
        Oid owner = *line == kSharedLine ? InvalidOid : role;
        Added added = add_to_line(usage, *line, owner, amount, most);
        if (added != Added::kOtherRole)
            return added == Added::kYes;
    }
}

bool add_to_usage(RoleUsage* usage, UsageLine line, uint32 amount, uint32 most) {
    return add_to_line(usage, line, role_of_line(usage, line), amount, most) == Added::kYes;
}

UsageLine line_of_role(RoleUsage* usage, Oid role) {
    UsageLine line = find_line(usage, role);
    return line == kNone ? kSharedLine : line;
}

const char* role_name(Oid role) {
    char* name = GetUserNameFromId(role, true);
    return name != nullptr ? name : psprintf("unknown (OID=%u)", role);
}

void subtract_usage(RoleUsage* usage, UsageLine line, uint32 amount) {
    pg_atomic_fetch_sub_u64(&usage->lines[line].word, amount);
}

} // namespace interlock
