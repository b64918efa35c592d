#include "execution/stored_row.h"

#include "execution/read.h"

namespace interlock::inline execution {

static AttrNumber* numbers_of(const Bitmapset* columns) {
    auto* numbers =
        static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (bms_num_members(columns) + 1)));
    int count = 0;
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;)
        numbers[count++] = column;
    return numbers;
}

// The columns of a row of the table, as a SELECT returns them.
static void make_row(StoredRow* row, TupleDesc table, const RowRead& read,
                     const NullableDatum* stored) {
    auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * (read.count + 1)));
    auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * (read.count + 1)));
    row->columns = CreateTemplateTupleDesc(read.count);
    for (int i = 0; i < read.count; i++) {
        TupleDescCopyEntry(row->columns, i + 1, table, read.columns[i]);
        values[i] = stored[i].value;
        nulls[i] = stored[i].isnull;
    }
    row->tuple = heap_form_tuple(row->columns, values, nulls);
}

StoredRow read_row(Relation rel, const TableInfo* info, const Key& key, const Bitmapset* columns,
                   RowLock lock) {
    RowRead read = {{rel, info, &key},
                    PlanKind("read_row"),
                    numbers_of(columns),
                    bms_num_members(columns),
                    lock};
    auto* stored = static_cast<NullableDatum*>(palloc(sizeof(NullableDatum) * (read.count + 1)));
    StoredRow row = {};
    row.attnums = columns;
    ItemPointerSetInvalid(&row.place);
    read.place = &row.place;
    read.is_busy = &row.is_busy;
    row.found = read_row(read, stored);
    if (row.found)
        make_row(&row, RelationGetDescr(rel), read, stored);
    return row;
}

StoredRow read_locked_row(Relation rel, const TableInfo* info, const Key& key,
                          const Bitmapset* columns) {
    constexpr int kAttempts = 3;
    for (int i = 0; i < kAttempts; i++) {
        StoredRow row = read_row(rel, info, key, columns, {RowStrength::kNoKeyUpdate});
        if (row.found || !read_row(rel, info, key, columns).found)
            return row;
    }
    raise_suppressed(rel);
}

const Bitmapset* with_table_key(Relation rel, const TableInfo* info, const Key& key,
                                const Bitmapset* columns) {
    if (is_named_by_table_key(info, key) ||
        !bms_is_subset(info->key.attnums, readable_columns(rel)))
        return columns;
    return bms_union(columns, info->key.attnums);
}

const Key* table_key(const TableInfo* info, const Key& key, const StoredRow& row) {
    if (is_named_by_table_key(info, key) || !row.found ||
        !bms_is_subset(info->key.attnums, row.attnums))
        return &key;
    auto* result = static_cast<Key*>(palloc0(sizeof(Key)));
    result->by = &info->key;
    bool is_null;
    for (int i = 0; i < info->key.count; i++)
        result->values[i] = stored_value(row, info->key.columns[i].attnum, &is_null);
    return result;
}

const Key* read_table_key(Relation rel, const TableInfo* info, const Key& key) {
    const Bitmapset* columns = with_table_key(rel, info, key, nullptr);
    return columns != nullptr ? table_key(info, key, read_row(rel, info, key, columns)) : &key;
}

Datum stored_value(const StoredRow& row, AttrNumber attnum, bool* is_null) {
    int position = 1;
    for (int column = -1; (column = bms_next_member(row.attnums, column)) >= 0; position++)
        if (column == attnum)
            return heap_getattr(row.tuple, position, row.columns, is_null);
    elog(ERROR, "column %d was not read", attnum);
    pg_unreachable();
}

Datum stored_row_to_jsonb(const StoredRow& row, JsonFor what) {
    return row_to_jsonb(row.columns, row.tuple, what);
}

HeapTuple stored_row_as_tuple(const StoredRow& row, const TableInfo* info) {
    int count = info->columns->natts;
    auto* values = static_cast<Datum*>(palloc0(sizeof(Datum) * count));
    auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * count));
    memset(nulls, true, count);
    int position = 1;
    for (int column = -1; (column = bms_next_member(row.attnums, column)) >= 0; position++)
        values[column - 1] = heap_getattr(row.tuple, position, row.columns, &nulls[column - 1]);
    return heap_form_tuple(info->columns, values, nulls);
}

} // namespace interlock::inline execution
