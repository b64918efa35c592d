// Version history: an entry for every version of a row, in a second table of the same owner.
//
// An AFTER ROW trigger writes the entry when the row is final, in the transaction that writes the
// row, with the rights of the history table's owner. It is a constraint trigger FROM the history
// table, so the server keeps the two tables together through renames, dumps and drops. Its
// arguments are the settings (history/settings.h).
//
// There is no entry for a write of an ignored writer, and for an update that changes only ignored
// columns. These writes, and suppressed writes, are counted in the operation log. An update that
// changes nothing, or moves only the version and the marker of a row, is neither recorded nor
// counted. With record_markers, moves of the marker are recorded.
//
// With whole_every, most entries of updates do not have the whole row (history/short_entry.h).
//
// Isolation: writers of one row exclude each other until they end. So at every level, a
// transaction's entries for a key are consecutive in the order of ids. Within a transaction they
// are ordered by command, then by id. Readers see the entries that their snapshot shows.
//
// Any role can create such a trigger on its own table, FROM any table on which it has TRIGGER. So a
// link counts only between tables of one owner, and entries are read only from a table with the
// expected columns.
//
// SQLSTATEs of a write: 39P01 if the trigger has no history table. 55000 if the history table
// belongs to another role, or if the table has lost its key. 09000 if a trigger or rule of the
// history table suppresses the entry. 42501 if other roles have triggers on the history table.
// Writing the entry can raise other errors.
#pragma once

#include "history/settings.h"
#include "table/key.h"
#include "table/relation.h"
#include "table/row_json.h"
#include "table/trigger.h"

namespace interlock::inline sweeper {
struct SweepTask; // sweeper/task.h
} // namespace interlock::inline sweeper
namespace interlock::inline table {
class Statement;
} // namespace interlock::inline table

namespace interlock::history {

extern const Mechanism kHistoryMechanism;

struct History : OwnTrigger, HistorySettings {
    Oid table;               // the history table; InvalidOid: the trigger names none
    bool same_owner;         // the owner of the root, when this was loaded
    Bitmapset* key_columns;  // columns of the root's key in this table; null: none
    bool same_key;           // the key and its types have not changed since the history began
    bool plain_key;          // its values print the same under all settings of a session
    Bitmapset* left_out;     // columns that are computed when they are read
    JsonMembers row_members; // the columns in an entry's row: all others
    JsonMembers key_members; // the columns in its key
    Bitmapset* ignored;      // attribute numbers of the ignored columns; null: none
    Bitmapset* unmoved; // and of those that our triggers set, without counters, and without the
                        // columns of a marker if markers are recorded
};

// The facet. Null if history is not enabled.
extern int history_facet;
inline const History* history_of(const TableInfo* info) {
    return facet_of<const History>(info, history_facet);
}

// Reads a trigger. The trigger of a former partition counts as no history: DETACH keeps triggers
// with a FROM.
void load_history(TableInfo* info, const Trigger* trigger);

// Finds the columns whose changes are not recorded. To be called after all concepts have found
// their columns.
void load_ignored_columns(TableInfo* info);

// The type of a column for the trigger's arguments. It does not depend on quote_all_identifiers.
char* history_type_name(Oid relid, const char* column);

inline bool has_retention(const History* history) {
    return history->keep_versions > 0 || history->keep_for > 0;
}

// The table's history. Raises 55000 if it is not enabled.
const History* require_history(Relation rel, const TableInfo* info);

// Whether the history table belongs to the owner of the table.
bool has_own_entries(Relation rel, const History* history);

// Opens the history table. Raises 39P01 if there is none, and 55000 if it belongs to another role.
// This is checked before and after the table is locked.
Relation open_entries(Relation rel, const History* history, LOCKMODE mode);

// The same for readers of entries. Also raises 55000 if columns are missing or have other types.
Relation open_readable_entries(Relation rel, const History* history, LOCKMODE mode);

// The key of a row, as its entries have it.
Datum history_key(const TableInfo* info, const RowValues& row);

// The same for a key that a caller has passed.
Datum history_key(const TableInfo* info, const Key& key);

// Adds " WHERE <the hash of h's key> = ... AND h.key = $key", which uses the index of the history
// table.
void add_entry_key(Statement* statement, int key);

// Entries are trimmed in batches: their deletion is not urgent.
constexpr TimestampTz kHistorySweepGap = USECS_PER_MINUTE;

// When the sweeper must trim an entry of that time.
TimestampTz trim_time(const History* history, TimestampTz changed_at);

// --- Trimming ------------------------------------------------------------------------------------

// The tables in this database whose history is trimmed, a list of Oid in the current context.
List* trimmed_tables();

// Makes the next pass begin with the first entry, because the retention has changed.
void restart_trimming(Oid history);

// Trims one batch of the table's history, after the previous batch. The first position is {}. Does
// nothing if another session has locked either table.
struct TrimResult {
    int64 trimmed;
    bool more;
    int64 reached;
    bool unsettled;   // a transaction with a lower id may still commit
    TimestampTz next; // when there will be more to trim; DT_NOEND: not known
};
TrimResult trim_batch(Oid relid, const TrimResult& before, int32 max_rows);

// The sweeper's task (history/sweep.cpp).
extern const SweepTask kHistorySweep;

} // namespace interlock::history
