#include "table/citus.h"

#include "server/arguments.h"
#include "server/result_row.h"
#include "table/catalog_trigger.h"
#include "table/trigger.h"

namespace interlock::inline table {

namespace {

// A scan of one of Citus' tables. It sees what is committed by now.
class CitusCatalog {
public:
    CitusCatalog(const char* name, Oid relid) {
        catalog_ = table_open(get_relname_relid(name, PG_CATALOG_NAMESPACE), AccessShareLock);
        AttrNumber column = get_attnum(RelationGetRelid(catalog_), "logicalrelid");
        ScanKeyData key;
        ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
        scan_ = systable_beginscan(catalog_, InvalidOid, false, nullptr, OidIsValid(relid) ? 1 : 0,
                                   &key);
    }

    // At the end it closes the catalog and returns false.
    bool next() {
        CHECK_FOR_INTERRUPTS();
        row_ = systable_getnext(scan_);
        if (HeapTupleIsValid(row_))
            return true;
        close();
        return false;
    }

    void close() {
        systable_endscan(scan_);
        table_close(catalog_, AccessShareLock);
    }

    // Zero if it is null, or if there is no such column.
    Datum value(const char* column) const {
        AttrNumber number = get_attnum(RelationGetRelid(catalog_), column);
        bool is_null = true;
        Datum found = number == InvalidAttrNumber
                          ? 0
                          : heap_getattr(row_, number, RelationGetDescr(catalog_), &is_null);
        return is_null ? 0 : found;
    }

private:
    Relation catalog_;
    SysScanDesc scan_;
    HeapTuple row_;
};

} // namespace

constexpr const char* kPartitions = "pg_dist_partition";
constexpr const char* kShards = "pg_dist_shard";

static bool has_citus() {
    return OidIsValid(get_relname_relid(kPartitions, PG_CATALOG_NAMESPACE)) &&
           OidIsValid(get_relname_relid(kShards, PG_CATALOG_NAMESPACE));
}

Distribution distribution_of(Oid relid) {
    if (!has_citus())
        return Distribution::kNone;
    CitusCatalog partitions(kPartitions, relid);
    if (!partitions.next())
        return Distribution::kNone;
    bool is_reference = DatumGetChar(partitions.value("partmethod")) == 'n' &&
                        DatumGetChar(partitions.value("repmodel")) == 't';
    partitions.close();
    return is_reference ? Distribution::kReference : Distribution::kSharded;
}

void refuse_distributed(Relation rel, const char* subject, const char* hint) {
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("%s cannot be used with table \"%s\", which Citus distributes", subject,
                           RelationGetRelationName(rel)),
                    errhint("%s", hint)));
}

// --- Shards that lack a trigger ------------------------------------------------------------------

// AppendShardIdToName: the name and the number, and a hash if that is too long.
static const char* shard_name(const char* table, int64 shard) {
    char* suffix = psprintf("_" INT64_FORMAT, shard);
    auto length = static_cast<int>(strlen(table));
    auto suffix_length = static_cast<int>(strlen(suffix));
    if (length < NAMEDATALEN - suffix_length)
        return psprintf("%s%s", table, suffix);
    uint32 hash = DatumGetUInt32(hash_any(reinterpret_cast<const unsigned char*>(table), length));
    int kept = pg_mbcliplen(table, length, NAMEDATALEN - suffix_length - 10);
    return psprintf("%.*s_%.8x%s", kept, table, hash, suffix);
}

// The shards of the table on this server.
static List* shards_of(Oid relid) {
    List* found = NIL;
    CitusCatalog shards(kShards, relid);
    while (shards.next()) {
        Oid shard = get_relname_relid(
            shard_name(get_rel_name(relid), DatumGetInt64(shards.value("shardid"))),
            get_rel_namespace(relid));
        if (OidIsValid(shard))
            found = lappend_oid(found, shard);
    }
    return found;
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

extern "C" {
PG_FUNCTION_INFO_V1(list_unguarded_shards);
PG_FUNCTION_INFO_V1(distribution);

// list_unguarded_shards() -> setof (rel, shard, call)
Datum list_unguarded_shards(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    if (!has_citus())
        return 0;
    CitusCatalog partitions(kPartitions, InvalidOid);
    while (partitions.next()) {
        Oid relid = DatumGetObjectId(partitions.value("logicalrelid"));
        if (get_rel_name(relid) != nullptr)
            in_scratch([&] { add_unguarded_shards(result, relid); });
    }
    return 0;
}

// distribution(rel) -> text
Datum distribution(PG_FUNCTION_ARGS) {
    constexpr const char* kNames[] = {nullptr, "sharded", "reference"};
    const char* name = kNames[static_cast<int>(distribution_of(PG_GETARG_OID(0)))];
    if (name == nullptr)
        PG_RETURN_NULL();
    PG_RETURN_TEXT_P(cstring_to_text(name));
}
}

} // namespace interlock::inline table
