#include "execution/unmodified.h"

namespace interlock {

namespace {

constexpr const char* kEquals = "OPERATOR(pg_catalog.=)";

bool compare(const OwnTable& table, const RelationFacts* facts) {
    TupleDesc columns = facts->columns;
    if (columns->natts < table.count ||
        (table.key_count > 0 && facts->key_count != table.key_count))
        return false;
    for (int i = 0; i < table.count; i++)
        if (!is_as_made(table.columns[i], TupleDescAttr(columns, i)))
            return false;
    for (int i = 0; i < table.key_count; i++)
        if (facts->keys[i].attnum != i + 1 || strcmp(facts->keys[i].equals, kEquals) != 0)
            return false;
    return true;
}

TupleDesc columns_as_made(const OwnTable& table) {
    TupleDesc columns = CreateTemplateTupleDesc(table.count);
    for (int i = 0; i < table.count; i++)
        TupleDescInitEntry(columns, i + 1, table.columns[i].name, table.columns[i].type, -1, 0);
    return columns;
}

KeyColumn* key_as_made(const OwnTable& table) {
    auto* keys = static_cast<KeyColumn*>(palloc0(sizeof(KeyColumn) * (table.key_count + 1)));
    for (int i = 0; i < table.key_count; i++) {
        keys[i].attnum = i + 1;
        keys[i].type = table.columns[i].type;
        keys[i].equals = kEquals;
    }
    return keys;
}

} // namespace

bool is_as_made(const OwnTable& table, const RelationFacts* facts) {
    if (facts->as_made == AsMade::kUnknown)
        facts->as_made = compare(table, facts) ? AsMade::kYes : AsMade::kNo;
    return facts->as_made == AsMade::kYes;
}

const RelationFacts* facts_as_made(const OwnTable& table, const RelationFacts* facts) {
    if (is_as_made(table, facts))
        return facts;
    auto* made = static_cast<RelationFacts*>(palloc0(sizeof(RelationFacts)));
    made->relid = facts->relid;
    made->memory = CurrentMemoryContext;
    made->columns = columns_as_made(table);
    made->key_count = table.key_count;
    made->keys = key_as_made(table);
    made->as_made = AsMade::kNo;
    return made;
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
