#include "table/own_table.h"

#include "server/library_version.h"

namespace interlock::inline table {

namespace {

// Cached until some table or schema is created, renamed or dropped.
struct KnownTable {
    const char* name; // of static storage, and of one table in either schema
    Oid table;
};

} // namespace

constexpr int kKnownTables = 16;
static KnownTable known_tables[kKnownTables] = {};
static int known_count = 0;
static uint64 changes = 0;

namespace {

struct Schemas {
    Oid own = InvalidOid;
    Oid internal = InvalidOid;
};

} // namespace

static Schemas known_schemas;

static void forget_tables(Datum, CatalogCache, uint32) {
    known_count = 0;
    changes++;
}

static void forget_schemas(Datum, CatalogCache, uint32) {
    known_schemas = {};
    changes++;
}

static void watch_catalogs() {
    static bool watches = false;
    if (watches)
        return;
    CacheRegisterSyscacheCallback(RELNAMENSP, forget_tables, 0);
    CacheRegisterSyscacheCallback(NAMESPACENAME, forget_tables, 0);
    CacheRegisterSyscacheCallback(NAMESPACEOID, forget_schemas, 0);
    watches = true;
}

// The schema that is a member of the extension; it is found by that dependency, not by its name.
static Oid member_schema(Oid extension) {
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(ExtensionRelationId));
    ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(extension));
    Relation catalog = table_open(DependRelationId, AccessShareLock);
    SysScanDesc scan =
        systable_beginscan(catalog, DependReferenceIndexId, true, nullptr, lengthof(keys), keys);
    Oid schema = InvalidOid;
    HeapTuple tuple;
    while (!OidIsValid(schema) && HeapTupleIsValid(tuple = systable_getnext(scan))) {
        auto* depend = reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple));
        if (depend->classid == NamespaceRelationId && depend->deptype == DEPENDENCY_EXTENSION)
            schema = depend->objid;
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return schema;
}

// Raises 55000 when the library does not work with that SQL.
static Schemas schemas_of_extension() {
    ExtensionRow extension = extension_row();
    if (!OidIsValid(extension.oid))
        return {};
    require_version(extension.version);
    pfree(extension.version);
    return {extension.schema, member_schema(extension.oid)};
}

static Schemas load_schemas() {
    watch_catalogs();
    uint64 before = changes;
    Schemas schemas = schemas_of_extension();
    if (changes == before)
        known_schemas = schemas;
    return schemas;
}

static void require_name(Oid schema, const char* expected) {
    const char* name = OidIsValid(schema) ? get_namespace_name(schema) : nullptr;
    if (name != nullptr && strcmp(name, expected) != 0)
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_SCHEMA),
                 errmsg("schema \"%s\" of extension \"pg_interlock\" was renamed to \"%s\"",
                        expected, name),
                 errhint("ALTER SCHEMA %s RENAME TO %s;", quote_identifier(name), expected)));
}

static Oid find_table(Oid (*schema)(), const char* schema_name, const char* name) {
    for (int i = 0; i < known_count; i++)
        if (known_tables[i].name == name || strcmp(known_tables[i].name, name) == 0)
            return known_tables[i].table;
    watch_catalogs();
    uint64 before = changes;
    require_schema_names();
    Oid table = get_relname_relid(name, schema());
    if (!OidIsValid(table))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("relation \"%s.%s\" does not exist", schema_name, name)));
    if (changes == before && known_count < kKnownTables)
        known_tables[known_count++] = {name, table};
    return table;
}

// Raises 42704 when the extension is not there.
static Oid require_schema(Oid schema) {
    if (!OidIsValid(schema) || get_namespace_name(schema) == nullptr)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("extension \"pg_interlock\" does not exist")));
    return schema;
}

Oid own_schema() { return OidIsValid(known_schemas.own) ? known_schemas.own : load_schemas().own; }

Oid internal_schema() {
    return OidIsValid(known_schemas.internal) ? known_schemas.internal : load_schemas().internal;
}

void require_schema_names() {
    require_name(own_schema(), kOwnSchema);
    require_name(internal_schema(), kInternalSchema);
}

Oid own_table(const char* name) { return find_table(own_schema, kOwnSchema, name); }

Oid internal_table(const char* name) { return find_table(internal_schema, kInternalSchema, name); }

char* own_function(const char* name) {
    return quote_qualified_identifier(get_namespace_name(require_schema(own_schema())), name);
}

char* own_trigger_function_name(const char* name) {
    return quote_qualified_identifier(get_namespace_name(require_schema(internal_schema())), name);
}

static Oid function_oid(const char* name, std::initializer_list<Oid> arguments, Oid schema) {
    const oidvector* types = buildoidvector(arguments.begin(), static_cast<int>(arguments.size()));
    return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
                           PointerGetDatum(types), ObjectIdGetDatum(schema));
}

Oid own_function_oid(const char* name, std::initializer_list<Oid> arguments) {
    return function_oid(name, arguments, own_schema());
}

Oid own_trigger_function(const char* name) {
    return function_oid(name, {}, require_schema(internal_schema()));
}

} // namespace interlock::inline table
