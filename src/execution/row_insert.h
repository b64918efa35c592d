// The INSERT of one row as data (execution/insert.h).
#pragma once

#include "execution/probe.h"

namespace interlock {

// A column that the INSERT names, and a value of that type.
struct NamedValue {
    AttrNumber attnum;
    Oid type;
    Datum value;
    bool is_null = false;
};

struct RowInsert {
    Relation rel;
    const RelationFacts* facts;
    const NamedValue* values;
    int count;
};

} // namespace interlock
