// The INSERT of one row as data (execution/insert.h).
#pragma once

#include "execution/probe.h"
#include "table/plan.h"

namespace interlock::inline execution {

// A column that the INSERT names, with a value of the given type.
struct NamedValue {
    AttrNumber attnum;
    Oid type;
    Datum value;
    bool is_null = false;
};

struct RowInsert {
    Relation rel;
    const TableInfo* info;
    PlanKind kind; // the statement's text depends only on this kind and on the columns
    const NamedValue* values;
    int count;
    const AttrNumber* returned; // columns of the row as it was stored
    int returned_count;
    bool by_index = false;         // PlanShape::by_index
    const UniqueKey* by = nullptr; // the key that names the row; null: the table's key
    // Set by insert_row(): a trigger prevented the insert (RowWrite::was_suppressed).
    mutable bool was_suppressed = false;
};

// The key of ON CONFLICT DO NOTHING.
inline const UniqueKey& arbiter_of(const RowInsert& insert) {
    return insert.by != nullptr ? *insert.by : insert.info->key;
}

} // namespace interlock::inline execution
