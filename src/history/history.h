// Version history: an entry for every version of a row, in a table of the same owner.
//
// An AFTER ROW trigger writes the entry when the row is final, in the transaction that writes the
// row, with the rights of the history table's owner. It is a constraint trigger FROM the history
// table, so that the server keeps the two together through renames, dumps and drops. Its arguments
// are the settings (history/settings.h).
//
// Left out are writes of ignored writers, and updates that change ignored columns alone: they leave
// a line in the operation log, as suppressed ones do. An update that moves the marker of a row
// alone leaves neither, unless markers are recorded.
//
// Isolation: writers of one row exclude each other until they end, so a transaction's entries of a
// key are together in the order of ids at every level. Within a transaction they are ordered by
// command, then id. Readers see the entries that their snapshot shows.
//
// Any role can create a trigger of ours on a table of its own, FROM any table on which it has
// TRIGGER. So a link counts only between tables of one owner, and entries are read only from a
// table with their columns.
//
// SQLSTATEs of a write: 39P01 the trigger has no history table; 55000 that belongs to another role,
// or the table has lost its key; 09000 a trigger or rule of the history table suppresses the entry;
// 42501 other roles have triggers on it; and errors of writing the entry.
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
    Oid table;               // the history table, InvalidOid: the trigger names none
    bool same_owner;         // as the root has, when this was loaded
    Bitmapset* key_columns;  // attribute numbers of the root's key in this table; null: it has none
    bool same_key;           // the key and its types are those the history began with
    bool plain_key;          // its values print alike under all settings of a session
    Bitmapset* left_out;     // columns that are computed on reading
    JsonMembers row_members; // of an entry's row: all others
    JsonMembers key_members; // of its key
    Bitmapset* ignored;      // attribute numbers of the ignored columns; null: none
    Bitmapset* passed;  // and those of a marker; null: an update is recorded, whatever it changes
    Bitmapset* unmoved; // and those of a version: an update of nothing else is left out
};

// Null when history is not enabled.
extern int history_part;
inline const History* history_of(const TableInfo* info) {
    return part_of<const History>(info, history_part);
}

// There is none by the trigger of a former partition: DETACH leaves triggers with a FROM where they
// are.
void load_history(TableInfo* info, const Trigger* trigger);

// Finds the columns whose changes are not recorded, once all concepts have found theirs.
void load_ignored_columns(TableInfo* info);

// The type of a column as the trigger's arguments have it, independent of quote_all_identifiers.
char* history_type_name(Oid relid, const char* column);

inline bool has_retention(const History* history) {
    return history->keep_versions > 0 || history->keep_for > 0;
}

// The table's history; raises 55000 when it is not enabled.
const History* require_history(Relation rel, const TableInfo* info);

// Whether the history table belongs to the owner of the table.
bool has_own_entries(Relation rel, const History* history);

// Opens it. Raises 39P01 when there is none and 55000 when it belongs to another role, before it is
// locked, and afterwards again.
Relation open_entries(Relation rel, const History* history, LOCKMODE mode);

// Likewise for readers of entries; 55000 also when columns are missing or have other types.
Relation open_readable_entries(Relation rel, const History* history, LOCKMODE mode);

// The key of a row in its entries.
Datum history_key(const TableInfo* info, const RowValues& row);

// The key of a row as a caller gave it, likewise.
Datum history_key(const TableInfo* info, const Key& key);

// " WHERE <the hash of h's key> = ... AND h.key = $key": by the index of the history table.
void add_entry_key(Statement* statement, int key);

// Entries are trimmed in batches: their deletion is not urgent.
constexpr TimestampTz kHistorySweepGap = USECS_PER_MINUTE;

// When the sweeper is to come for an entry of that time.
TimestampTz trim_time(const History* history, TimestampTz changed_at);

// --- Trimming ------------------------------------------------------------------------------------

// The tables in this database whose history is trimmed, a list of Oid in the current context.
List* trimmed_tables();

// Lets the next pass begin with the first entry, for another retention.
void restart_trimming(Oid history);

// One batch of the table's history, after the one before; {} at first. Nothing is done when another
// session has locked either table.
struct TrimResult {
    int64 trimmed;
    bool more;
    int64 reached;
    bool unsettled;   // one with a lower id may still be committed
    TimestampTz next; // when there will be more, DT_NOEND if nothing is known
};
TrimResult trim_batch(Oid relid, const TrimResult& before, int32 max_rows);

// The sweeper's task (history/sweep.cpp).
extern const SweepTask kHistorySweep;

} // namespace interlock::history
