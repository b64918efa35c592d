#include "table/own_table.h"

namespace interlock {

namespace {

// Kept until some table or schema is made, renamed or dropped.
struct KnownTable {
    const char* name; // of static storage
    Oid table;
};
constexpr int kKnownTables = 8;
KnownTable known_tables[kKnownTables] = {};
int known_count = 0;
uint64 changes = 0;

Oid known_schema = InvalidOid;

void forget_tables(Datum, int, uint32) {
    known_count = 0;
    changes++;
}

void forget_schema(Datum, int, uint32) {
    known_schema = InvalidOid;
    changes++;
}

void watch_catalogs() {
    static bool watches = false;
    if (watches)
        return;
    CacheRegisterSyscacheCallback(RELNAMENSP, forget_tables, 0);
    CacheRegisterSyscacheCallback(NAMESPACENAME, forget_tables, 0);
    CacheRegisterSyscacheCallback(NAMESPACEOID, forget_schema, 0);
    watches = true;
}

// There is no cache for it in the server.
Oid schema_of_extension() {
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
                CStringGetDatum("pg_interlock"));
    Relation catalog = table_open(ExtensionRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(catalog, ExtensionNameIndexId, true, nullptr, 1, &key);
    HeapTuple tuple = systable_getnext(scan);
    Oid schema = InvalidOid;
    if (HeapTupleIsValid(tuple))
        schema = reinterpret_cast<Form_pg_extension>(GETSTRUCT(tuple))->extnamespace;
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return schema;
}

} // namespace

Oid own_schema() {
    if (OidIsValid(known_schema))
        return known_schema;
    watch_catalogs();
    uint64 before = changes;
    Oid schema = schema_of_extension();
    if (changes == before)
        known_schema = schema;
    return schema;
}

void require_schema_name() {
    Oid schema = own_schema();
    const char* name = OidIsValid(schema) ? get_namespace_name(schema) : nullptr;
    if (name != nullptr && strcmp(name, kOwnSchema) != 0)
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_SCHEMA),
                 errmsg("the schema of extension \"pg_interlock\" was renamed to \"%s\"", name),
                 errhint("ALTER SCHEMA %s RENAME TO %s;", quote_identifier(name), kOwnSchema)));
}

Oid own_table(const char* name) {
    for (int i = 0; i < known_count; i++)
        if (known_tables[i].name == name || strcmp(known_tables[i].name, name) == 0)
            return known_tables[i].table;
    watch_catalogs();
    uint64 before = changes;
    require_schema_name();
    Oid table = get_relname_relid(name, own_schema());
    if (!OidIsValid(table))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("relation \"interlock.%s\" does not exist", name)));
    if (changes == before && known_count < kKnownTables)
        known_tables[known_count++] = {name, table};
    return table;
}

namespace {

// Raises 42704 when the extension is not there.
Oid require_own_schema() {
    Oid schema = own_schema();
    if (!OidIsValid(schema) || get_namespace_name(schema) == nullptr)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("extension \"pg_interlock\" does not exist")));
    return schema;
}

} // namespace

char* own_function(const char* name) {
    return quote_qualified_identifier(get_namespace_name(require_own_schema()), name);
}

Oid own_trigger_function(const char* name) {
    return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
                           PointerGetDatum(buildoidvector(nullptr, 0)),
                           ObjectIdGetDatum(require_own_schema()));
}

} // namespace interlock
