// The metadata of a table, cached by the session: its key, its columns, the code that a write runs,
// and a facet for each concept. Only the concept knows the content of its facet (table/facet.h).
//
// The arguments of the extension's triggers on a table are its configuration. So the server
// maintains it: it follows renames, partitions and dumps, and it is dropped with the table. It is
// cached in each session until the relation changes.
#pragma once

#include "contention/count.h"
#include "server/kept_function.h"
#include "table/citus.h"

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
    Oid type;    // the base type of a domain
    Oid collation;
    Oid io_parameter;
    KeptFunction input;
    FmgrInfo compare; // three-way comparison of the index's operator family; kept, as by the
    FmgrInfo equal;   // relation cache: operator classes are made by superusers alone
    Oid equals;       // the operator, whose schema may be renamed
};

// A unique index whose columns always name one row (table/key_index.h).
struct UniqueKey {
    Oid index;
    int count;
    KeyColumn* columns;
    Bitmapset* attnums;
    mutable bool loaded; // `columns` have more than attnum and opclass
};

struct TableCheck {
    Expr* expression; // null: not enforced
    bool planned;     // once for all statements
};

enum class Unmodified : uint8 { kUnknown, kYes, kNo };

// Decides about a change of a row (execution/row_change.h). False: the row must not be written.
using RowCheck = bool (*)(RowChange* change);

// At least the number of registered facets.
constexpr int kMostFacets = 12;

struct TableInfo {
    Oid relid;
    bool valid;
    MemoryContext memory;
    TupleDesc columns;
    Distribution distribution; // by Citus
    UniqueKey key; // the primary key, else the narrowest unique one; no columns when there is none
    UniqueKey* other_keys; // other keys that name a row, each over other columns
    int other_key_count;
    Bitmapset* other_key_columns; // of all of them, and of which generated ones are made
    Bitmapset* key_sources;       // of which generated columns of `key` are made
    Bitmapset* maintained;        // columns that our own triggers set: a version, a marker
    Bitmapset* counted;           // columns that only the functions of counters set
    Bitmapset* partition_columns; // of a partition with checks: they decide which rows fit
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
    Oid counted_as; // the table under which this one is counted; invalid for temporary tables
    mutable LineRef counters[kTableKinds];
    mutable void* facets[kMostFacets]; // null: the concept has nothing for the table
};

// Used by the typed accessor in the concept's header.
template <typename Facet>
Facet* facet_of(const TableInfo* info, int number) {
    return static_cast<Facet*>(info->facets[number]);
}

// A facet that has something for each of several triggers. The accessor returns a copy, which is
// empty if there is no facet. add_item() returns the place of a new item, which is all zero.
template <typename Item>
struct FacetList {
    Item* first;
    int count;
    Item* begin() const { return first; }
    Item* end() const { return first + count; }
};

template <typename Item>
FacetList<Item> list_of(const TableInfo* info, int number) {
    const auto* list = facet_of<const FacetList<Item>>(info, number);
    return list != nullptr ? *list : FacetList<Item>{};
}

template <typename Item>
Item* add_item(TableInfo* info, int number) {
    if (info->facets[number] == nullptr)
        info->facets[number] = palloc0(sizeof(FacetList<Item>));
    auto* list = facet_of<FacetList<Item>>(info, number);
    size_t size = sizeof(Item) * (list->count + 1);
    list->first =
        static_cast<Item*>(list->first == nullptr ? palloc(size) : repalloc(list->first, size));
    Item* item = &list->first[list->count++];
    *item = {};
    return item;
}

// The counters of a mechanism on the table (contention/count.h). A partition is counted with its
// partitioned table.
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
