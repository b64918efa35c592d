// State markers: business locks on rows. Columns of the row name the holder that edits it, and a
// deadline. All sessions can read the row; only the holder can change it.
//
// The configuration is the arguments of a trigger, which checks every write, also one that sets the
// marker by plain SQL. A marker past its deadline counts as free at once, for all sessions; the
// sweeper clears its columns.
//
// Isolation: the trigger sees the newest committed row after any wait, so that under READ COMMITTED
// exactly one of two callers that lock one row wins. Under REPEATABLE READ and above a row that
// changed after the snapshot is 40001.
#pragma once

#include "execution/row_change.h"
#include "table/key.h"
#include "table/relation.h"
#include "table/row.h"
#include "table/trigger.h"

namespace interlock::marker {

constexpr int kHolderBytes = 1024;

enum MarkerRole { kStatus, kHolder, kTime, kUntil, kReason, kMarkerRoles };

struct MarkerColumn {
    NameData name;
    AttrNumber attnum; // InvalidAttrNumber when the column is gone
    Oid type;
    int32 typmod;
    bool not_null;
};

struct Marker : OwnTrigger {
    MarkerColumn columns[kMarkerRoles];
    Bitmapset* attnums;
    int64 ttl; // microseconds
    bool enforce;
    bool usable;         // every column is there
    bool compares_bytes; // holders: the collation of their column is deterministic
};

// Whether a column of that type can have the role. No domain can: the trigger writes past its
// constraints.
bool fits_role(int role, Oid type);

// Null when markers are not enabled.
extern int marker_part;
inline const Marker* marker_of(const TableInfo* info) {
    return part_of<const Marker>(info, marker_part);
}

// What the arguments of the trigger say: the ttl, the mode, the columns by role, and then, where
// the owner wants no index, that: so one that a tool has dropped is noticed.
struct MarkerSettings {
    int64 ttl;
    bool enforce;
    bool sweep_index;
    const char* columns[kMarkerRoles];
};

// False when they are not as enable_marker writes them.
bool read_settings(const Trigger* trigger, MarkerSettings* settings);
List* trigger_arguments(const MarkerSettings& settings);
extern const Mechanism kMarkerMechanism;

// A trigger's arguments as markers of the table.
Marker* read_marker(Oid relid, TupleDesc columns, const Trigger* trigger);

// The table's markers. Raises 39P01 when the trigger has arguments that enable_marker does not
// write, and 55000 when a column is missing; require_marker also when markers are not enabled or
// their trigger does not fire in this session.
const Marker* usable_marker(Relation rel, const TableInfo* info);
const Marker* require_marker(Relation rel, const TableInfo* info);

// Raises 55000 when the column is not the status of a marker: it has other values than 0 and 1, a 1
// without holder and time, transitions, or a CHECK that allows other values. For enable_marker,
// inside with_spi; `columns` has the names by role.
void refuse_foreign_status(Oid relid, const char* const* columns);

// Raises 55000 when rows are held in columns of the marker that `columns` does not have: others
// could lock them at once. `present` has those of the marker by role, null where one is gone.
void refuse_moved_marker(Oid relid, const char* const* present, const char* const* columns);

// The columns, by role, where no other is named and there is no marker yet.
constexpr const char* kDefaultColumns[kMarkerRoles] = {"lock_status", "lock_by", "lock_time",
                                                       "lock_until", "lock_reason"};

// The column that a call has which names none: that of the marker, which may be null.
inline const char* unnamed_column(const Marker* present, int role) {
    return present != nullptr && present->well_formed ? NameStr(present->columns[role].name)
                                                      : kDefaultColumns[role];
}

// Raises 55000 when the status column would be added beside those of a hand-made lock, which would
// go on beside the marker: a row would have two holders. So it is when a column for the holder or
// the time exists that the caller has not named, or beside one "status", and when the holder column
// has holders.
void refuse_unadopted_status(Oid relid, const char* const* columns, bool names_status);

inline const char* quoted(const Marker* marker, MarkerRole role) {
    return quote_identifier(NameStr(marker->columns[role].name));
}

// The marker of a row as it stands at `clock`.
struct MarkerState {
    bool set;           // status is 1
    bool foreign;       // status is none of a marker's: neither 0 nor 1 nor null
    bool live;          // set, and its deadline lies ahead
    const char* holder; // null when not set or the column is null
    TimestampTz since;  // when it was locked or touched last; DT_NOBEGIN when null
    TimestampTz until;  // DT_NOBEGIN when null
};
MarkerState marker_state(const Marker* marker, TupleDesc columns, HeapTuple tuple,
                         TimestampTz clock);
MarkerState marker_state(const Marker* marker, const RowValues& row, TimestampTz clock);

// The same but for the holder, which stays null: it is not read, however long it is.
MarkerState marker_status(const Marker* marker, const RowValues& row, TimestampTz clock);

// A value in the type of a marker column, as assignment makes it: a timestamp is rounded, a text
// that is too long is 22001.
Datum marker_time(const MarkerColumn& column, TimestampTz time);
Datum marker_text(const MarkerColumn& column, const char* text);

// Whether both are the same name; a null equals no name.
bool same_holder(const char* left, const char* right);

// The holder as which the current transaction writes: the argument of set_holder, or null.
const char* current_holder();

// Checks the name of a holder, by default argument "holder": 22023 when it is empty or longer than
// kHolderBytes.
const char* check_holder(const char* holder, const char* argument = "holder");

// How a function of ours calls its write. The conditions of its statement may be evaluated before a
// wait for the row, and are not evaluated again if the other transaction only locked the row or
// rolled back. So the trigger, which runs after the wait, decides: it computes the deadline, and
// skips a row whose marker has expired by then, as if the statement had not found it.
enum class Verb : uint8 { kLock, kTouch, kHandOver, kRelease, kForce };
struct VerbCall : WritingVerb { // whose `run` is run_as_verb
    Verb verb;
    Oid root; // of the marker
    const char* holder;
    int64 ttl;
    TimestampTz until; // the deadline that the statement sets, before any wait
    bool has_reason;
    bool may_shorten;  // a deadline that is nearer than the present one
    int trigger_depth; // around the statement
};

// Runs body(), which runs the verb's statement, with the verb's holder as the current holder.
void run_as_verb(const WritingVerb& verb, void (*body)(void* closure), void* closure);

// The call whose own statement has fired the trigger that runs now on a table with this marker;
// null for any other write, also one by a trigger of that row.
const VerbCall* firing_verb(const Marker* marker);

// The tables with markers in this database, a list of Oid in the current context: as they were
// enabled, in schemas the current user may use or in all; or those that store the rows, partitions
// instead of their parents.
enum class MarkerTables { kEnabled, kAll, kStored };
List* marker_tables(MarkerTables which);

void define_marker_settings();

} // namespace interlock::marker
