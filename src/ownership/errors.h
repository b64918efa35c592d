// The error of owned columns: IL007.
#pragma once

#include "table/relation.h"

namespace interlock::ownership {

// A write, or a release of values, that one writer may not do to columns of another.
struct OwnedByOther {
    Relation rel;
    const TableInfo* info;
    const char* key;          // as JSON. Null: the caller may not read it.
    const Bitmapset* columns; // at least one
    const char* owner;
    const char* writer; // null: there is none
    bool releases;      // release_values(), not a write
};

// Raises IL007. DETAIL is {table, key, columns, owner, writer}.
[[noreturn]] void raise_column_owned(const OwnedByOther& found);

} // namespace interlock::ownership
