// The history table: its columns, and writing an entry into it.
//
// If the history table is partitioned (history/partition.h), the following holds for the
// partitioned table and for the partition of the entry.
//
// If the history table is unmodified since enable_history, an entry is written without a statement.
// Then the library makes the calls that the executor would make for the INSERT: the next value of
// the sequence, the heap, and the indexes, whose one expression is known. The metadata for this is
// cached with the table's other metadata, and loaded again when the table changes. A statement is
// used for all other history tables, while interlock.direct_execution is off, and while a module
// watches the executor.
#pragma once

#include "table/made_column.h"
#include "table/relation.h"

namespace interlock::history {

// The columns in their order. Schema tools know their types: the transaction is a bigint, which has
// room for a full transaction ID.
enum EntryColumn : int {
    kEntryId,
    kEntryKey,
    kEntryVersion,
    kEntryChangedAt,
    kEntryWriter,
    kEntryChangedBy,
    kEntryOperation,
    kEntryRow,
    kEntryChanged,
    kEntryBefore,
    kEntryTransaction,
    kEntryCommand,
    kEntryWriterFrom,
    kEntryContext,
    kEntryBuildsOn,
    kEntryDistance,
    kEntryHash,
    kEntryColumns
};

struct HistoryColumn : MadeColumn {
    const char* definition;
};
extern const HistoryColumn history_columns[kEntryColumns];

// Whether the first columns of the table are these columns, unmodified and with these numbers.
bool has_made_columns(Relation rel);

// Whether the table also has no other columns.
bool has_history_columns(Relation rel);

// Whether the table has columns with these names and types.
bool has_entry_columns(Relation rel);

struct HistoryIndex {
    Oid oid;
    IndexInfo* info;
    // The column before the id in the index. kId: the id is first, and changed_at can follow.
    enum Leads : uint8 { kId, kKeyHash, kTransaction } leads;
};

// A table into which entries are written without a statement. A partitioned table has no indexes
// here, and a partition has no sequence.
constexpr int kHistoryIndexes = 3;
struct HistoryTable {
    Oid sequence; // the sequence of the ids; InvalidOid: the table is a partition
    int index_count;
    HistoryIndex indexes[kHistoryIndexes];
    uint64 rights_of; // state of the privileges when it was checked
    bool may_write;   // whether the owner may write
};

// The facet. Null if the table is no history table, or is not eligible.
extern int history_table_facet;
inline HistoryTable* history_table_of(const TableInfo* info) {
    return facet_of<HistoryTable>(info, history_table_facet);
}

void load_history_table(TableInfo* info, Relation rel);

// Opens the index that begins with that column. Null if no such index can be used by every
// snapshot. Only for a table for which has_made_columns() is true. Runs no code of the owner.
Relation open_history_index(Relation rel, HistoryIndex::Leads wanted);

// The index of keys, in the order of ids. Null if no such index can be used by every snapshot, or
// if an ALTER made it unknown.
Relation open_index_of_keys(Relation rel);

// Writes an entry with these values into an open history table and gives it an id. Writes as the
// table's owner and without row security. If the INSERT would run code of others that belongs to
// the table, it is restricted. Closes the table.
void write_entry(Relation rel, Datum* values, bool* nulls);

} // namespace interlock::history
