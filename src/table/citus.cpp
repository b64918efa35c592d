#include "table/citus.h"

namespace interlock::inline table {

namespace {

// A scan of one of Citus' tables. It sees what is committed by now.
class CitusCatalog {
public:
    explicit CitusCatalog(const char* name) : CitusCatalog(name, "logicalrelid", F_OIDEQ, 0, 0) {}

    CitusCatalog(const char* name, Oid relid)
        : CitusCatalog(name, "logicalrelid", F_OIDEQ, ObjectIdGetDatum(relid), 1) {}

    CitusCatalog(const char* name, int64 shard)
        : CitusCatalog(name, "shardid", F_INT8EQ, Int64GetDatum(shard), 1) {}

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
    CitusCatalog(const char* name, const char* column, RegProcedure equal, Datum value, int keys) {
        catalog_ = table_open(get_relname_relid(name, PG_CATALOG_NAMESPACE), AccessShareLock);
        ScanKeyData key;
        ScanKeyInit(&key, get_attnum(RelationGetRelid(catalog_), column), BTEqualStrategyNumber,
                    equal, value);
        scan_ = systable_beginscan(catalog_, InvalidOid, false, nullptr, keys, &key);
    }

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

List* shards_of(Oid relid) {
    const char* name = get_rel_name(relid);
    if (name == nullptr)
        return NIL;
    List* found = NIL;
    CitusCatalog shards(kShards, relid);
    while (shards.next()) {
        Oid shard = get_relname_relid(shard_name(name, DatumGetInt64(shards.value("shardid"))),
                                      get_rel_namespace(relid));
        if (OidIsValid(shard))
            found = lappend_oid(found, shard);
    }
    return found;
}

static bool is_shard(Oid relid, Oid table, int64 shard) {
    const char* name = get_rel_name(table);
    const char* own = get_rel_name(relid);
    return name != nullptr && own != nullptr && strcmp(own, shard_name(name, shard)) == 0 &&
           get_rel_namespace(relid) == get_rel_namespace(table);
}

Oid table_of_shard(Oid relid) {
    const char* name = get_rel_name(relid);
    const char* number = name != nullptr ? strrchr(name, '_') : nullptr;
    if (number == nullptr || !isdigit(static_cast<unsigned char>(number[1])) || !has_citus())
        return relid;
    int64 shard = strtoll(number + 1, nullptr, 10);
    CitusCatalog shards(kShards, shard);
    if (!shards.next())
        return relid;
    Oid table = DatumGetObjectId(shards.value("logicalrelid"));
    shards.close();
    return is_shard(relid, table, shard) ? table : relid;
}

List* distributed_tables() {
    if (!has_citus())
        return NIL;
    List* found = NIL;
    CitusCatalog partitions(kPartitions);
    while (partitions.next())
        found = lappend_oid(found, DatumGetObjectId(partitions.value("logicalrelid")));
    return found;
}

extern "C" {
PG_FUNCTION_INFO_V1(distribution);

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
