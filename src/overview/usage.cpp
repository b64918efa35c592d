// The view usage: what of the resources of fixed size in shared memory is in use, in all, by role,
// and by role and database, as the concepts report it.

#include "server/concept.h"
#include "server/result_row.h"
#include "server/usage_report.h"

namespace interlock::overview {

namespace {

struct Output {
    ReturnSetInfo* rows;
    bool sees_all;
};

} // namespace

static void put_totals(const Output& output, const UsageReport& report);
static void put_roles(const Output& output, const UsageReport& report);
static void put_databases(const Output& output, const UsageReport& report);

extern "C" {
PG_FUNCTION_INFO_V1(list_usage);

Datum list_usage(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    Output output = {reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo),
                     has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS)};
    UsageReport report = new_usage_report();
    for (const Concept* each : concepts())
        if (each->report_usage != nullptr)
            each->report_usage(&report);
    put_totals(output, report);
    put_roles(output, report);
    put_databases(output, report);
    return 0;
}
}

// Names of databases and roles are no secret; what a role uses is for its members.
static bool may_see(const Output& output, Oid role) {
    return output.sees_all || has_privs_of_role(GetUserId(), role);
}

// what, database, role, used, of
static void put_row(const Output& output, const char* what, const char* database, const char* role,
                    int64 used, int64 of) {
    Datum values[5] = {CStringGetTextDatum(what), 0, 0, Int64GetDatum(used), Int64GetDatum(of)};
    bool nulls[5] = {false, database == nullptr, role == nullptr, false, of == kNotLimited};
    if (database != nullptr)
        values[1] = CStringGetTextDatum(database);
    if (role != nullptr)
        values[2] = CStringGetTextDatum(role);
    add_result_row(output.rows, values, nulls);
}

static void put_totals(const Output& output, const UsageReport& report) {
    ListCell* cell;
    foreach (cell, report.totals) {
        auto* use = static_cast<const ResourceUse*>(lfirst(cell));
        put_row(output, use->what, nullptr, nullptr, use->used, use->of);
    }
}

static const char* name_of_database(Oid database) {
    char* name = get_database_name(database);
    return name != nullptr ? name : psprintf("unknown (OID=%u)", database);
}

// The use of a database, or of all.
static void put_uses(const Output& output, const UsageReport& report, bool in_all) {
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, report.uses);
    while (auto* use = static_cast<DatabaseUse*>(hash_seq_search(&scan))) {
        if (OidIsValid(use->of.database) == in_all || !may_see(output, use->of.role))
            continue;
        const char* database = in_all ? nullptr : name_of_database(use->of.database);
        for (int i = 0; i < report.resource_count; i++)
            if (use->amounts[i] > 0)
                put_row(output, report.resources[i].what, database, role_name(use->of.role),
                        in_units(use->amounts[i], report.resources[i].unit), kNotLimited);
    }
}

static void put_roles(const Output& output, const UsageReport& report) {
    ListCell* cell;
    foreach (cell, report.roles) {
        auto* use = static_cast<const ResourceUse*>(lfirst(cell));
        if (may_see(output, use->role))
            put_row(output, use->what, nullptr, role_name(use->role), use->used, use->of);
    }
    put_uses(output, report, true);
}

static void put_databases(const Output& output, const UsageReport& report) {
    put_uses(output, report, false);
}

} // namespace interlock::overview
