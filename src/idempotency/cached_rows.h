// The rows of a small table of the extension, cached by the session until the table changes: each
// claim reads them, and they hardly ever change.
//
// The rows are cached with the metadata of the table (TableInfo), and dropped by an invalidation of
// the table. A trigger of ours sends one at each change of a row: to all sessions when the change
// is committed, and before the commit returns. TRUNCATE and ALTER TABLE send their own. A
// transaction that changes such a table caches nothing, so that a rollback has nothing to undo.
//
// ALTER TABLE ... ENABLE TRIGGER ALL, as in the output of pg_dump --data-only --disable-triggers,
// leaves a trigger that does not fire while session_replication_role is replica. With such a
// trigger the rows are read again after a second, and always in sessions of that role.
//
// Callers need no privilege on the table, and its policies do not count.
#pragma once

#include "execution/unmodified.h"
#include "table/row.h"

namespace interlock::idempotency {

// The name comes first; a table's own struct adds the other columns.
struct CachedRow {
    const text* name;
};

struct CachedTable {
    OwnTable table; // its first column, a text, is the name
    size_t row_size;
    // Copies what it keeps. There may be more columns than those of the table.
    void (*read)(TupleDesc columns, const RowValues& values, CachedRow* row);
};

struct CachedRows {
    MemoryContext memory;
    TimestampTz until; // when they are too old, DT_NOEND: when the table changes
    bool are_too_many;
    int count;
    int room;
    size_t row_size;
    char* rows; // ordered by name

    const CachedRow* row(int i) const {
        return reinterpret_cast<const CachedRow*>(rows + row_size * i);
    }
};

// The place of a table's rows among the parts of its metadata.
extern int cached_rows_part;

// The rows as of the last commit, whatever the transaction's snapshot shows. Null when a statement
// has to read it: its trigger is off, there are too many rows, or this transaction has changed one.
// Good until the next call.
const CachedRows* cached_rows(const CachedTable& table);

// The place of the first row that has the name, or would be behind those before it.
int first_cached(const CachedRows& cached, const text* name);

int compare_names(const text* left, const text* right);

// Calls visit(row) for each row of the name until it returns true, which it returns then.
template <typename Row, typename Visit>
bool any_cached(const CachedRows& cached, const text* name, Visit&& visit) {
    for (int i = first_cached(cached, name);
         i < cached.count && compare_names(cached.row(i)->name, name) == 0; i++)
        if (visit(*reinterpret_cast<const Row*>(cached.row(i))))
            return true;
    return false;
}

} // namespace interlock::idempotency
