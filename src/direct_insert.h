// The INSERT of one row without a statement: the calls that the server's executor would make for
//
//     INSERT INTO table (...) VALUES (...) [ON CONFLICT (key) DO NOTHING] [RETURNING ...]
//
// with the same waits, triggers, checks and errors. Whatever is not plain (direct_probe.h, triggers
// of statements, defaults that need the planner, values that the statement would convert) is
// declined before anything is done, and the caller runs the statement. What differs is told in
// direct_update.h.
#pragma once

#include "direct_probe.h"

namespace interlock {

// A column that the INSERT names, and a value of that type.
struct NamedValue {
    AttrNumber attnum;
    Oid type;
    Datum value;
    bool is_null = false;
};

// kLookedAlready: DO NOTHING for a caller who has just looked for the key and found none. The
// executor's own look before it enters the row is left out; it proves nothing.
enum class OnConflict : uint8 { kRaise, kDoNothing, kLookedAlready };

struct RowInsert {
    Relation rel;
    const RelationFacts* facts;
    const NamedValue* values;
    int count;
    OnConflict on_conflict = OnConflict::kRaise; // of its key (facts->key_index) with another row
};

// kNoRow when nothing was inserted: the key is there, or a BEFORE trigger suppresses the row.
// Without `returning`, which is told of the row as it was stored, the caller needs no right to
// read.
DirectOutcome insert_directly(const RowInsert& insert, RowCallback returning = {});

template <typename Returning>
DirectOutcome insert_directly(const RowInsert& insert, Returning&& returning) {
    auto tell = [](void* closure, HeapTuple row) {
        (*static_cast<std::remove_reference_t<Returning>*>(closure))(row);
        return true;
    };
    return insert_directly(insert, RowCallback{tell, &returning});
}

} // namespace interlock
