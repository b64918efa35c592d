#include "lease/role_share.h"

#include "lease/clock.h"

namespace interlock::lease {

int max_leases_per_role = kHalf;

namespace {

struct LeaseUsage {
    RoleUsage by_role;
    pg_atomic_uint64 looks[kUsageLines]; // for room, when it was in vain
};

} // namespace

static LeaseUsage* usage = nullptr;

static uint32 most_units(LeaseAccess access) {
    return access == LeaseAccess::kPrivileged ? kNoLimit : lease_share() * kUnitsPerLease;
}

bool charge_lease(Oid role, uint32 units, LeaseAccess access, LeaseCharge* charge) {
    charge->units = static_cast<uint16>(units);
    return add_usage(&usage->by_role, role, units, most_units(access), &charge->line);
}

void discharge_lease(const LeaseCharge& charge) {
    subtract_usage(&usage->by_role, charge.line, charge.units);
}

bool add_to_charge(LeaseCharge* charge, uint32 units, LeaseAccess access) {
    uint32 most = most_units(access);
    if (!add_to_usage(&usage->by_role, charge->line, units, most))
        return false;
    charge->units += units;
    return true;
}

void subtract_from_charge(LeaseCharge* charge, uint32 units) {
    charge->units -= units;
    subtract_usage(&usage->by_role, charge->line, units);
}

uint32 lease_share() { return share_of(max_leases_per_role, max_leases); }

RoleUsage* lease_usage() { return usage != nullptr ? &usage->by_role : nullptr; }

bool has_looked_for_room(Oid role) {
    constexpr int64 kPause = 10000;
    UsageLine line = line_of_role(&usage->by_role, role);
    auto last = static_cast<int64>(pg_atomic_read_u64(&usage->looks[line]));
    return last != 0 && monotonic_now() - last < kPause;
}

void note_look_for_room(Oid role) {
    UsageLine line = line_of_role(&usage->by_role, role);
    pg_atomic_write_u64(&usage->looks[line], static_cast<uint64>(monotonic_now()));
}

void define_lease_usage_settings() {
    DefineCustomIntVariable(
        "interlock.max_leases_per_role", "How many leases one role may have at once.",
        "-1 is half of interlock.max_leases. A lease with a long key, or with more than one level, "
        "counts as several. Superusers are not limited.",
        &max_leases_per_role, kHalf, kHalf, 1 << 28, PGC_SIGHUP, 0, nullptr, nullptr, nullptr);
}

size_t lease_usage_size() { return sizeof(LeaseUsage); }

void attach_lease_usage(void* memory, bool found) {
    usage = static_cast<LeaseUsage*>(memory);
    if (found)
        return;
    initialize_usage(&usage->by_role);
    for (pg_atomic_uint64& look : usage->looks)
        pg_atomic_init_u64(&look, 0);
}

} // namespace interlock::lease
