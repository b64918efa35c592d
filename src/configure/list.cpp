// configuration(), and the rows of the view guards. Both read the catalog alone: they wait for
// no lock, and run no code of others.

#include "server/arguments.h"
#include "server/result_row.h"
#include "server/scope.h"
#include "table/mechanism.h"
#include "table/relation.h"
#include "table/settings_json.h"

namespace interlock::configure {

static bool may_see(Oid relid);
static void list_table(const Mechanisms& mechanisms, Oid relid, ReturnSetInfo* output);

extern "C" {
PG_FUNCTION_INFO_V1(configuration);
PG_FUNCTION_INFO_V1(list_guards);

// configuration(rel)
Datum configuration(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Oid relid = arguments.relation(0);
    check_table(relid, kAnyOfTable);
    Mechanisms mechanisms = all_mechanisms();
    TableSettings found = read_settings(mechanisms, relid);
    JsonObject all;
    for (int i = 0; i < mechanisms.count; i++)
        if (found.settings[i] != nullptr)
            all.add(mechanisms.all[i]->name, found.settings[i]);
    return JsonbPGetDatum(all.finish());
}

// rel, mechanism, settings, enforced, findings
Datum list_guards(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    Mechanisms mechanisms = all_mechanisms();
    ListCell* cell;
    foreach (cell, configured_tables(mechanisms)) {
        CHECK_FOR_INTERRUPTS();
        in_scratch([&] {
            Oid relid = lfirst_oid(cell);
            if (may_see(relid))
                list_table(mechanisms, relid, output);
        });
    }
    return 0;
}
}

static bool may_see(Oid relid) {
    Oid schema = get_rel_namespace(relid);
    if (!OidIsValid(schema) || (isAnyTempNamespace(schema) && !isTempNamespace(schema)))
        return false;
    return has_any_privilege(relid, kAnyOfTable) ||
           has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
}

static const char* own_finding(const Mechanism& mechanism, const char* trigger) {
    return psprintf("trigger \"%s\" is not as interlock.%s creates it: writes are refused", trigger,
                    mechanism.enable);
}

// The findings beside those of the SQL functions list_..._findings.
static void list_table(const Mechanisms& mechanisms, Oid relid, ReturnSetInfo* output) {
    TableSettings found = read_settings(mechanisms, relid);
    for (int i = 0; i < mechanisms.count; i++) {
        const char* forged = found.forged[i];
        if (found.settings[i] == nullptr && forged == nullptr)
            continue;
        Datum values[5] = {ObjectIdGetDatum(relid)};
        bool nulls[5] = {false, false, found.settings[i] == nullptr, false, false};
        values[1] = CStringGetTextDatum(mechanisms.all[i]->name);
        if (!nulls[2])
            values[2] = JsonbPGetDatum(found.settings[i]);
        values[3] = BoolGetDatum(forged == nullptr);
        Datum finding = 0;
        if (forged != nullptr)
            finding = CStringGetTextDatum(own_finding(*mechanisms.all[i], forged));
        values[4] = PointerGetDatum(
            construct_array(&finding, forged != nullptr ? 1 : 0, TEXTOID, -1, false, TYPALIGN_INT));
        add_result_row(output, values, nulls);
    }
}

} // namespace interlock::configure
