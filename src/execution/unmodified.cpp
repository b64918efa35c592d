#include "execution/unmodified.h"

namespace interlock::inline execution {

static Oid equality_of(const MadeColumn& column) {
    return lookup_type_cache(column.type, TYPECACHE_EQ_OPR)->eq_opr;
}

static bool compare(const OwnTable& table, const TableInfo* info) {
    TupleDesc columns = info->columns;
    if (columns->natts < table.count || (table.key_count > 0 && info->key.count != table.key_count))
        return false;
    for (int i = 0; i < table.count; i++)
        if (!is_unmodified(table.columns[i], TupleDescAttr(columns, i)))
            return false;
    for (int i = 0; i < table.key_count; i++)
        if (info->key.columns[i].attnum != i + 1 ||
            info->key.columns[i].equals != equality_of(table.columns[i]))
            return false;
    return true;
}

static TupleDesc unmodified_columns(const OwnTable& table) {
    TupleDesc columns = CreateTemplateTupleDesc(table.count);
    for (int i = 0; i < table.count; i++)
        TupleDescInitEntry(columns, i + 1, table.columns[i].name, table.columns[i].type, -1, 0);
    return columns;
}

static KeyColumn* unmodified_key(const OwnTable& table) {
    auto* keys = static_cast<KeyColumn*>(palloc0(sizeof(KeyColumn) * (table.key_count + 1)));
    for (int i = 0; i < table.key_count; i++) {
        keys[i].attnum = i + 1;
        keys[i].type = table.columns[i].type;
        keys[i].equals = equality_of(table.columns[i]);
    }
    return keys;
}

bool is_unmodified(const OwnTable& table, const TableInfo* info) {
    if (info->unmodified == Unmodified::kUnknown)
        info->unmodified = compare(table, info) ? Unmodified::kYes : Unmodified::kNo;
    return info->unmodified == Unmodified::kYes;
}

const TableInfo* unmodified_info(const OwnTable& table, const TableInfo* info) {
    if (is_unmodified(table, info))
        return info;
    auto* made = static_cast<TableInfo*>(palloc0(sizeof(TableInfo)));
    made->relid = info->relid;
    made->memory = CurrentMemoryContext;
    made->columns = unmodified_columns(table);
    made->key.count = table.key_count;
    made->key.columns = unmodified_key(table);
    made->unmodified = Unmodified::kNo;
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

} // namespace interlock::inline execution
