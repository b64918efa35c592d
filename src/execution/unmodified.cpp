#include "execution/unmodified.h"

namespace interlock {

namespace {

bool compare(const OwnTable& table, const RelationFacts* facts) {
    TupleDesc columns = facts->columns;
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

} // namespace

bool is_as_made(const OwnTable& table, const RelationFacts* facts) {
    if (facts->as_made == AsMade::kUnknown)
        facts->as_made = compare(table, facts) ? AsMade::kYes : AsMade::kNo;
    return facts->as_made == AsMade::kYes;
}

Relation try_open(const OwnTable& table, LOCKMODE mode) {
    Oid oid = own_table(table.name);
    Relation rel = try_table_open(oid, mode);
    if (rel != nullptr && own_table(table.name) != oid) {
        close_table(rel);
        rel = nullptr;
    }
    return rel;
}

} // namespace interlock
