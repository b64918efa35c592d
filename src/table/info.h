// The metadata of a table, cached by the session: its key, its columns, the code that a write runs,
// and a part for each concept, whose contents only the concept knows (table/part.h).
//
// The configuration of a table is the arguments of our triggers on it. So the server maintains it:
// it follows renames, partitions and dumps, goes with the table, and is cached per session until
// the relation changes.
#pragma once

#include "contention/count.h"
#include "server/kept_function.h"

namespace interlock::inline execution {
struct ColumnDefault;
struct RowChange;
} // namespace interlock::inline execution

namespace interlock::inline table {

struct LaterTrigger;
struct Mechanism; // table/mechanism.h

struct KeyColumn {
    AttrNumber attnum;
    Oid opclass; // of the index
    Oid type;    // below any domain
    Oid collation;
    Oid io_parameter;
    KeptFunction input;
    FmgrInfo compare; // three-way comparison of the index's operator family; kept, as by the
    FmgrInfo equal;   // relation cache: operator classes are made by superusers alone
    Oid equals;       // the operator, whose schema may be renamed
};

// A unique index whose columns name one row at every moment (table/key_index.h).
struct UniqueKey {
    Oid index;
    int count;
    KeyColumn* columns;
    Bitmapset* attnums;
    mutable bool loaded; // `columns` have more than attnum and opclass
};

struct TableCheck {
    Expr* expression; // null when it is not enforced
    bool planned;     // once for all statements
};

enum class Unmodified : uint8 { kUnknown, kYes, kNo };

// Decides on a change of a row (execution/row_change.h); false: the row must not be written.
using RowCheck = bool (*)(RowChange* change);

// At least as many as are registered.
constexpr int kMostParts = 12;

struct TableInfo {
    Oid relid;
    bool valid;
    MemoryContext memory;
    TupleDesc columns;
    UniqueKey key; // the primary key, else the narrowest unique one; no columns when there is none
    UniqueKey* other_keys; // that name a row as well: no two, nor `key`, have the same columns
    int other_key_count;
    Bitmapset* other_key_columns; // of all of them, and of which generated ones are made
    Bitmapset* key_sources;       // of which generated columns of `key` are made
    Bitmapset* maintained;        // columns that our own triggers set: a version, a marker
    Bitmapset* counted;           // columns that a counter's verbs alone set
    Bitmapset* partition_columns; // of a partition with checks: they decide what fits into it
    Oid partition_root;           // the partitioned table at the top of those
    const char* first_check;      // the first of our BEFORE ROW triggers; null: none
    LaterTrigger* later;          // BEFORE triggers of others after it (table/last_word.h)
    int later_count;
    RowCheck* row_checks; // of our BEFORE UPDATE triggers, in the order in which they fire
    int row_check_count;
    int index_count;
    int unique_count;      // of the indexes
    bool runs_code;        // an INSERT runs triggers, rules, checks or defaults
    bool only_row_checks;  // an UPDATE runs no code before it is done but row_checks
                           // (execution/row_change.h)
    TableCheck* checks;    // of the constraints in `columns`
    KeptFunction populate; // jsonb_populate_record for the row type
    mutable ColumnDefault*
        defaults; // by column, null before the first use (execution/column_default.cpp)
    mutable Unmodified unmodified; // of one of our own tables (execution/unmodified.cpp)
    Oid counted_as; // the table whose counters count this one; invalid for temporary tables
    mutable LineRef counters[kTableKinds];
    mutable void* parts[kMostParts]; // null: the table has nothing of the concept's
};

// For the typed accessor in the concept's header.
template <typename Part>
Part* part_of(const TableInfo* info, int number) {
    return static_cast<Part*>(info->parts[number]);
}

// The counters of a mechanism on the table (contention/count.h). Partitions are counted with the
// table that they are of.
inline LineRef line_of(const TableInfo* info, CountedKind kind) {
    if (!OidIsValid(info->counted_as) || kind == CountedKind::kNone)
        return {nullptr, 0};
    return line_of_table(info->counted_as, kind, &info->counters[static_cast<int>(kind)]);
}

inline void count(const TableInfo* info, CountedKind kind, Counter counter, uint64 amount = 1) {
    count(line_of(info, kind), counter, amount);
}

inline const char* column_name(const TableInfo* info, AttrNumber attnum) {
    return NameStr(TupleDescAttr(info->columns, attnum - 1)->attname);
}

} // namespace interlock::inline table
