// The table beside the table: its columns, and writing an entry into it.
//
// Where the table is unmodified since enable_history, an entry is written without a statement, by
// the calls that the executor would make for the INSERT: the next value of the sequence, the heap,
// and the indexes, whose one expression is known. The metadata for that is loaded when the table
// changes, and cached with the table's other metadata. All other tables take the statement, and all
// while interlock.direct_execution is off or the executor is watched.
#pragma once

#include "table/made_column.h"
#include "table/relation.h"
#include "table/restricted.h"

namespace interlock::history {

// The columns in their order, of types that schema tools know: the number of the transaction is a
// bigint, which a full transaction ID fits in.
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
    kEntryColumns
};

struct HistoryColumn : MadeColumn {
    const char* definition;
};
extern const HistoryColumn history_columns[kEntryColumns];

// Whether the first columns of the table are these, unmodified: their numbers are those above.
bool has_made_columns(Relation rel);

// Whether it has no others, either.
bool has_history_columns(Relation rel);

// Whether it has columns of these names and types.
bool has_entry_columns(Relation rel);

struct HistoryIndex {
    Oid oid;
    IndexInfo* info;
    enum Leads : uint8 { kId, kKeyHash, kTransaction } leads; // before the id, but for kId
};

// A table that entries are written into without a statement.
constexpr int kHistoryIndexes = 3;
struct HistoryTable {
    Oid sequence; // of the ids
    int index_count;
    HistoryIndex indexes[kHistoryIndexes];
    uint64 rights_of; // when it was found out whether
    bool may_write;   // the owner may
};

// Null for a table that is not a history table or not eligible.
extern int history_table_part;
inline HistoryTable* history_table_of(const TableInfo* info) {
    return part_of<HistoryTable>(info, history_table_part);
}

void load_history_table(TableInfo* info, Relation rel);

// Opens the index that leads with it; null if there is none that every snapshot can use. For a
// table that has_made_columns(). Runs no code of the owner.
Relation open_history_index(Relation rel, HistoryIndex::Leads wanted);

// Writes an entry with these values and finds its id. Call as the table's owner; for an INSERT that
// runs no code.
void insert_entry(Relation rel, const TableInfo* info, Datum* values, bool* nulls);

// Whether the table takes the values of an INSERT without calling code of others: its types are the
// server's, while a domain has checks, and another type may have casts.
bool has_types_of_server(Relation rel);

// Runs body(rel, info), which inserts into an open history table, as its owner and past its
// policies; restricted when the INSERT would run code of others that is on the table. Closes the
// table. A table whose definition is known has only our constraints.
template <typename Body>
void inserting_as_owner(Relation rel, Body&& body) {
    const TableInfo* info = table_info(rel);
    Oid user = GetUserId();
    auto insert = [&] {
        if (history_table_of(info) != nullptr || may_read_all(rel, user))
            body(rel, info);
        else
            hiding_row(rel, [&] { body(rel, info); });
    };
    if (info->index_count <= kHistoryIndexes && !info->runs_code && info->only_row_checks &&
        (history_table_of(info) != nullptr || has_types_of_server(rel))) {
        as_user(rel->rd_rel->relowner, SECURITY_LOCAL_USERID_CHANGE | SECURITY_NOFORCE_RLS, insert);
    } else {
        refuse_untrusted_triggers(rel, TRIGGER_TYPE_INSERT);
        as_restricted(rel->rd_rel->relowner, SECURITY_NOFORCE_RLS, insert);
    }
    table_close(rel, NoLock);
}

} // namespace interlock::history
