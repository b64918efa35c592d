// The rows of a small table of the extension, cached by the session until the table changes. Each
// claim reads such rows, and they hardly ever change.
//
// The rows are cached with the metadata of the table (TableInfo). An invalidation of the table
// drops them. A trigger of the extension sends an invalidation at each change of a row. All
// sessions receive it when the change is committed, before the commit returns. TRUNCATE and ALTER
// TABLE send their own. A transaction that changes such a table caches nothing, so a rollback needs
// no cleanup.
//
// ALTER TABLE ... ENABLE TRIGGER ALL, as in the output of pg_dump --data-only --disable-triggers,
// leaves a trigger that does not fire while session_replication_role is replica. With such a
// trigger the rows are read again after a second. In sessions with that role they are always read
// again.
//
// Callers need no privilege on the table, and its policies do not apply.
#pragma once

#include "execution/unmodified.h"
#include "table/row.h"

namespace interlock::idempotency {

// Begins with the name. A table's own struct adds the other columns.
struct CachedRow {
    const text* name;
};

struct CachedTable {
    OwnTable table; // its first column, a text, is the name
    size_t row_size;
    // Copies the values that the struct keeps. There may be more columns than those of the
    // definition.
    void (*read)(const RowValues& values, CachedRow* row);
};

struct CachedRows {
    MemoryContext memory;
    TimestampTz until; // valid until then; DT_NOEND: until the table changes
    bool are_too_many;
    int count;
    int room;
    size_t row_size;
    char* rows; // ordered by name

    const CachedRow* row(int i) const {
        return reinterpret_cast<const CachedRow*>(rows + row_size * i);
    }
};

// The facet with the rows of a table.
extern int cached_rows_facet;

// The rows as of the last commit, whatever the transaction's snapshot shows. Null if a statement
// must read the table: its trigger is off, it has too many rows, or this transaction has changed
// it. Valid until the next call.
const CachedRows* cached_rows(const CachedTable& table);

// The place of the first row with the name, or of the place where it would be inserted.
int first_cached(const CachedRows& cached, const text* name);

int compare_names(const text* left, const text* right);

// Calls visit(row) for each row with the name until it returns true. Returns whether it has
// returned true.
template <typename Row, typename Visit>
bool any_cached(const CachedRows& cached, const text* name, Visit&& visit) {
    for (int i = first_cached(cached, name);
         i < cached.count && compare_names(cached.row(i)->name, name) == 0; i++)
        if (visit(*reinterpret_cast<const Row*>(cached.row(i))))
            return true;
    return false;
}

} // namespace interlock::idempotency
