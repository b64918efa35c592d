// How much of the memory of leases each role uses, and its share.
//
// A lease is charged to the role that acquires it, from the request on until its memory is free
// again, in units of the memory that it needs at most: ancestors of its key that others use as well
// are charged to each of them.
#pragma once

#include "lease/memory.h"
#include "server/role_usage.h"

namespace interlock::lease {

// The setting, in leases of two units.
extern int max_leases_per_role;

// What a lease returns when it ends.
struct LeaseCharge {
    UsageLine line;
    uint16 units;
};

// Whether there is room for a lease: in the share of its role, and in all.
enum class LeaseRoom { kYes, kRoleIsFull, kFull };

// False: the role would exceed its share, which is no limit for privileged access.
bool charge_lease(Oid role, uint32 units, LeaseAccess access, LeaseCharge* charge);
void discharge_lease(const LeaseCharge& charge);

// For memory that a lease needs later on, and gives back while it is there.
bool add_to_charge(LeaseCharge* charge, uint32 units, LeaseAccess access);
void subtract_from_charge(LeaseCharge* charge, uint32 units);

// Whether the role has searched for expired leases a moment ago in vain: another search would only
// block others.
bool has_looked_for_room(Oid role);
void note_look_for_room(Oid role);

// The share of a role, in leases.
uint32 lease_share();

// Null without shared memory.
RoleUsage* lease_usage();

void define_lease_usage_settings();
size_t lease_usage_size();
void attach_lease_usage(void* memory, bool found);

} // namespace interlock::lease
