#include "own_table.h"

namespace interlock {

Oid own_table(const char* name) {
    Oid table = get_relname_relid(name, get_namespace_oid("interlock", false));
    if (!OidIsValid(table))
        elog(ERROR, "table interlock.%s does not exist", name);
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
