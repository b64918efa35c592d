#include "direct_own_table.h"

namespace interlock {

namespace {

// Under which only equal bytes are equal.
bool is_plain_collation(Oid collation) {
    return collation == C_COLLATION_OID || collation == DEFAULT_COLLATION_OID;
}

bool is_as_made(const OwnColumn& column, Form_pg_attribute attribute) {
    return !attribute->attisdropped && attribute->atttypid == column.type &&
           attribute->atttypmod < 0 &&
           (column.type != TEXTOID || is_plain_collation(attribute->attcollation)) &&
           strcmp(NameStr(attribute->attname), column.name) == 0;
}

} // namespace

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
