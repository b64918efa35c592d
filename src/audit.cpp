#include "audit.h"

#include "scope.h"

namespace interlock {

void audit(const char* table, const char* insert, int count, Oid* types, Datum* values) {
    Relation rel = table_open(get_relname_relid(table, get_namespace_oid("interlock", false)),
                              RowExclusiveLock);
    Oid owner = rel->rd_rel->relowner;
    table_close(rel, NoLock);
    as_user(owner, SECURITY_LOCAL_USERID_CHANGE, [&] {
        with_spi([&] { SPI_execute_with_args(insert, count, types, values, nullptr, false, 0); });
    });
}

} // namespace interlock
