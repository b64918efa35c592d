#include "direct_own_table.h"

namespace interlock {

bool is_as_made(const OwnTable& table, Relation rel, const RelationFacts* facts) {
    TupleDesc columns = RelationGetDescr(rel);
    if (columns->natts < table.count ||
        (table.key_count > 0 && facts->key_count != table.key_count))
        return false;
    for (int i = 0; i < table.count; i++)
        if (!is_as_made(table.columns[i], TupleDescAttr(columns, i)))
            return false;
    for (int i = 0; i < table.key_count; i++)
        if (facts->keys[i].attnum != i + 1)
            return false;
    return true;
}

} // namespace interlock
