// What the concepts report of their resources of fixed size in shared memory, for the view usage:
// in all, by role, and by role and database. It is collected here and shown by overview/usage.cpp.
#pragma once

#include "server/role_usage.h"

namespace interlock::inline server {

constexpr int64 kNotLimited = -1;
constexpr int kMostResources = 8; // that are counted by role and database

// The use of all or of a role, and its limit or kNotLimited.
struct ResourceUse {
    const char* what;
    Oid role; // InvalidOid: of all
    int64 used;
    int64 of;
};

struct Resource {
    const char* what;
    int64 unit;
};

// What a role uses in a database.
struct DatabaseUse {
    struct {
        Oid role;
        Oid database; // InvalidOid: in all databases
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

// In the current memory context.
UsageReport new_usage_report();

void report_total(UsageReport* report, const char* what, int64 used, int64 of);

// What each role uses; `unit` of what is counted is one of what is shown. Superusers have no share.
void report_roles(UsageReport* report, const char* what, RoleUsage* usage, int64 unit, int64 share);

// Adds a resource to be counted by role and database.
int add_resource(UsageReport* report, const char* what, int64 unit = 1);

// Counts `amount` more of it. May be called under a lightweight lock.
void count_use(UsageReport* report, int resource, Oid role, Oid database, int64 amount);

// In units, a part of one for a whole one.
inline int64 in_units(int64 amount, int64 unit) { return (amount + unit - 1) / unit; }

} // namespace interlock::inline server
