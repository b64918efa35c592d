#include "server/usage_report.h"

namespace interlock::inline server {

static List* append_use(List* list, const ResourceUse& use) {
    auto* copy = static_cast<ResourceUse*>(palloc(sizeof(ResourceUse)));
    *copy = use;
    return lappend(list, copy);
}

UsageReport new_usage_report() {
    UsageReport report = {};
    HASHCTL control = {};
    control.keysize = sizeof(DatabaseUse::of);
    control.entrysize = sizeof(DatabaseUse);
    control.hcxt = CurrentMemoryContext;
    report.uses =
        hash_create("pg_interlock usage", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    return report;
}

void report_total(UsageReport* report, const char* what, int64 used, int64 of) {
    report->totals = append_use(report->totals, {what, InvalidOid, used, of});
}

void report_roles(UsageReport* report, const char* what, RoleUsage* usage, int64 unit,
                  int64 share) {
    for (UsageLine line = 0; line < kUsageLines; line++) {
        uint64 word = read_usage(usage, line);
        if (amount_in(word) == 0)
            continue;
        Oid role = role_in(word);
        int64 of = superuser_arg(role) ? kNotLimited : share;
        report->roles =
            append_use(report->roles, {what, role, in_units(amount_in(word), unit), of});
    }
}

int add_resource(UsageReport* report, const char* what, int64 unit) {
    Assert(report->resource_count < kMostResources);
    report->resources[report->resource_count] = {what, unit};
    return report->resource_count++;
}

void count_use(UsageReport* report, int resource, Oid role, Oid database, int64 amount) {
    DatabaseUse key = {};
    key.of = {role, database};
    bool found;
    auto* use = static_cast<DatabaseUse*>(hash_search(report->uses, &key.of, HASH_ENTER, &found));
    if (!found)
        memset(use->amounts, 0, sizeof(use->amounts));
    use->amounts[resource] += amount;
}

} // namespace interlock::inline server
