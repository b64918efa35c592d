// What the concepts report about their fixed-size resources in shared memory, for view usage: in
// total, by role, and by role and database. It is collected here. overview/usage.cpp shows it.
#pragma once

#include "server/role_usage.h"

namespace interlock::inline server {

constexpr int64 kNotLimited = -1;
constexpr int kMostResources = 8; // resources that are counted by role and database

// How much all roles or one role use, and the limit, or kNotLimited.
struct ResourceUse {
    const char* what;
    Oid role; // InvalidOid: all roles
    int64 used;
    int64 of;
};

struct Resource {
    const char* what;
    int64 unit;
};

// How much a role uses in a database.
struct DatabaseUse {
    struct {
        Oid role;
        Oid database; // InvalidOid: all databases
    } of;             // hash key
    int64 amounts[kMostResources];
};

struct UsageReport {
    List* totals; // of ResourceUse, in the order of the reports
    List* roles;  // of ResourceUse
    Resource resources[kMostResources];
    int resource_count;
    HTAB* uses; // of DatabaseUse
};

// The report is allocated in the current memory context.
UsageReport new_usage_report();

void report_total(UsageReport* report, const char* what, int64 used, int64 of);

// Reports how much each role uses. `unit` is how many of the counted things make one unit in the
// view. `share` is the limit of a role. Superusers have no limit.
void report_roles(UsageReport* report, const char* what, RoleUsage* usage, int64 unit, int64 share);

// Adds a resource that is counted by role and database.
int add_resource(UsageReport* report, const char* what, int64 unit = 1);

// Counts `amount` more of the resource. May be called while a lightweight lock is held.
void count_use(UsageReport* report, int resource, Oid role, Oid database, int64 amount);

// The amount in units, rounded up.
inline int64 in_units(int64 amount, int64 unit) { return (amount + unit - 1) / unit; }

} // namespace interlock::inline server
