#include "own_table.h"

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

void forget_tables(Datum, int, uint32) {
    known_count = 0;
    changes++;
}

void watch_catalogs() {
    static bool watches = false;
    if (watches)
        return;
    CacheRegisterSyscacheCallback(RELNAMENSP, forget_tables, 0);
    CacheRegisterSyscacheCallback(NAMESPACENAME, forget_tables, 0);
    watches = true;
}

} // namespace

Oid own_table(const char* name) {
    for (int i = 0; i < known_count; i++)
        if (known_tables[i].name == name || strcmp(known_tables[i].name, name) == 0)
            return known_tables[i].table;
    watch_catalogs();
    uint64 before = changes;
    Oid table = get_relname_relid(name, get_namespace_oid("interlock", false));
    if (!OidIsValid(table))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("relation \"interlock.%s\" does not exist", name)));
    if (changes == before && known_count < kKnownTables)
        known_tables[known_count++] = {name, table};
    return table;
}

Oid owner_of_table(Oid relid) {
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
    if (!HeapTupleIsValid(tuple))
        return InvalidOid;
    Oid owner = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relowner;
    ReleaseSysCache(tuple);
    return owner;
}

void audit(const char* table, const char* insert, int count, Oid* types, Datum* values) {
    as_owner_of(own_table(table), [&] {
        with_spi([&] { SPI_execute_with_args(insert, count, types, values, nullptr, false, 0); });
    });
}

} // namespace interlock
