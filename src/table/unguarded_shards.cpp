// For the SQL of findings: shards of Citus that lack a trigger of their table.

#include "server/result_row.h"
#include "server/scope.h"
#include "table/catalog_trigger.h"
#include "table/citus.h"
#include "table/trigger.h"

namespace interlock::inline table {

static void add_unguarded_shards(const ReturnSetInfo* result, Oid relid);

extern "C" {
PG_FUNCTION_INFO_V1(list_unguarded_shards);

// list_unguarded_shards() -> setof (rel, shard, call)
Datum list_unguarded_shards(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    ListCell* cell;
    foreach (cell, distributed_tables())
        in_scratch([&] { add_unguarded_shards(result, lfirst_oid(cell)); });
    return 0;
}
}

static bool has_text(const List* texts, const char* text) {
    ListCell* cell;
    foreach (cell, texts)
        if (strcmp(static_cast<const char*>(lfirst(cell)), text) == 0)
            return true;
    return false;
}

// Adds what the triggers of the extension call, each call once.
static List* add_calls(List* calls, Oid relid) {
    CatalogTriggers triggers(relid);
    while (triggers.next()) {
        if (get_func_namespace(triggers.trigger.tgfoid) != internal_schema() ||
            !triggers.read_arguments())
            continue;
        List* arguments = NIL;
        for (int i = 0; i < argument_count(&triggers.trigger); i++)
            arguments = add_argument(arguments, triggers.trigger.tgargs[i]);
        char* call =
            psprintf("%s(%s)", get_func_name(triggers.trigger.tgfoid), arguments_sql(arguments));
        if (!has_text(calls, call))
            calls = lappend(calls, call);
    }
    return calls;
}

// What the table itself calls, or a shard of it, each shard has to call.
static void add_unguarded_shards(const ReturnSetInfo* result, Oid relid) {
    List* shards = shards_of(relid);
    List* wanted = add_calls(NIL, relid);
    ListCell* shard;
    ListCell* call;
    foreach (shard, shards)
        wanted = add_calls(wanted, lfirst_oid(shard));
    foreach (shard, shards) {
        const List* present = add_calls(NIL, lfirst_oid(shard));
        foreach (call, wanted) {
            const auto* text = static_cast<const char*>(lfirst(call));
            if (has_text(present, text))
                continue;
            Datum values[] = {ObjectIdGetDatum(relid), ObjectIdGetDatum(lfirst_oid(shard)),
                              CStringGetTextDatum(text)};
            bool nulls[lengthof(values)] = {};
            add_result_row(result, values, nulls);
        }
    }
}

} // namespace interlock::inline table
