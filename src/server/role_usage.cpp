#include "server/role_usage.h"

namespace interlock::inline server {

UsageLine line_of_role(RoleUsage* usage, Oid role) {
    uint32 hash = murmurhash32(role);
    for (uint32 i = 0; i < kUsageLines; i++) {
        auto line = static_cast<UsageLine>((hash + i) % kUsageLines);
        uint64 word = read_usage(usage, line);
        uint64 own = static_cast<uint64>(role) << 32;
        if (word == 0 && pg_atomic_compare_exchange_u64(&usage->lines[line].word, &word, own))
            return line;
        if (role_in(word) == role)
            return line;
    }
    return static_cast<UsageLine>(hash % kUsageLines);
}

void initialize_usage(RoleUsage* usage) {
    for (auto& line : usage->lines)
        pg_atomic_init_u64(&line.word, 0);
}

bool add_usage(RoleUsage* usage, Oid role, uint32 amount, uint32 most, UsageLine* line) {
    *line = line_of_role(usage, role);
    return add_to_usage(usage, *line, amount, most);
}

bool add_to_usage(RoleUsage* usage, UsageLine line, uint32 amount, uint32 most) {
    uint64 word = read_usage(usage, line);
    do {
        if (amount > most || amount_in(word) > most - amount)
            return false;
    } while (!pg_atomic_compare_exchange_u64(&usage->lines[line].word, &word, word + amount));
    return true;
}

void subtract_usage(RoleUsage* usage, UsageLine line, uint32 amount) {
    pg_atomic_fetch_sub_u64(&usage->lines[line].word, amount);
}

const char* role_name(Oid role) {
    char* name = GetUserNameFromId(role, true);
    return name != nullptr ? name : psprintf("unknown (OID=%u)", role);
}

} // namespace interlock::inline server
