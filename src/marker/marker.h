// State markers: business locks on rows. Columns of the row name the holder that edits it, and a
// deadline. All sessions can read the row. Only the holder can change it.
//
// The configuration is the arguments of a trigger. The trigger checks every write, also a write
// that sets the marker by plain SQL. A marker past its deadline counts as free at once, for all
// sessions. The sweeper clears its columns.
//
// Isolation: the trigger sees the newest committed row after any wait. So under READ COMMITTED,
// exactly one of two callers that lock the same row wins. Under REPEATABLE READ and above, a row
// that changed after the snapshot raises 40001.
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
    AttrNumber attnum; // InvalidAttrNumber: the column is gone
    Oid type;
    int32 typmod;
    bool not_null;
};

// Who may take a row from its holder with take_over_row before the deadline.
enum class TakeOver : uint8 {
    kExpired,   // no role: only a marker past its deadline can be taken over
    kOperators, // roles that may call force_unlock_row
    kAllow,     // every role that may write the row
};
const char* take_over_name(TakeOver take_over);

// Returns false if the word is none of the three.
bool parse_take_over(const char* name, TakeOver* take_over);

struct Marker : OwnTrigger {
    MarkerColumn columns[kMarkerRoles];
    Bitmapset* attnums;
    int64 ttl; // microseconds
    bool enforce;
    TakeOver take_over;
    bool usable;         // every column is there
    bool compares_bytes; // the collation of the holder's column is deterministic
};

// Whether a column of that type can have the role. A domain cannot, because the trigger writes past
// the constraints of the domain.
bool fits_role(int role, Oid type);

// The facet. Null if markers are not enabled.
extern int marker_facet;
inline const Marker* marker_of(const TableInfo* info) {
    return facet_of<const Marker>(info, marker_facet);
}

// The arguments of the trigger: the ttl, the mode, and the columns by role. Two more can follow.
// One says that the owner wants no index. Without it, a missing index was dropped by a tool. The
// other says who may take over, if that is not the default.
struct MarkerSettings {
    int64 ttl;
    bool enforce;
    bool sweep_index;
    TakeOver take_over;
    const char* columns[kMarkerRoles];
};

// Reads the arguments. Returns false if enable_marker does not write such arguments.
bool read_settings(const Trigger* trigger, MarkerSettings* settings);
List* trigger_arguments(const MarkerSettings& settings);
extern const Mechanism kMarkerMechanism;

// Reads a trigger's arguments, with the columns of the table.
Marker* read_marker(Oid relid, TupleDesc columns, const Trigger* trigger);

// The table's markers. Raises 39P01 if enable_marker does not write the trigger's arguments, and
// 55000 if a column is missing. require_marker() also raises 55000 if markers are not enabled or if
// their trigger does not fire in this session.
const Marker* usable_marker(Relation rel, const TableInfo* info);
const Marker* require_marker(Relation rel, const TableInfo* info);

// Raises 55000 if the column is not the status of a marker. It has other values than 0 and 1, a 1
// without holder and time, transitions, or a CHECK that allows other values. For enable_marker,
// inside with_spi. `columns` has the names by role.
void refuse_foreign_status(Oid relid, const char* const* columns);

// Raises 55000 if rows are held in columns of the marker that are not in `columns`, because others
// could lock these rows at once. `present` has the current columns by role. Null: the column is
// gone.
void refuse_moved_marker(Oid relid, const char* const* present, const char* const* columns);

// The default columns by role, if there is no marker yet.
constexpr const char* kDefaultColumns[kMarkerRoles] = {"lock_status", "lock_by", "lock_time",
                                                       "lock_until", "lock_reason"};

// The column for a role that a call does not name: the current column of the marker, which may be
// null.
inline const char* unnamed_column(const Marker* present, int role) {
    return present != nullptr && present->well_formed ? NameStr(present->columns[role].name)
                                                      : kDefaultColumns[role];
}

// Raises 55000 if a new status column would be added to a table that already has a manual lock. The
// manual lock would still work, and a row would have two holders. The table counts as such if it
// has a column for the holder or the time that the caller has not named, or a column "status" next
// to it. It also counts as such if the holder column has holders.
void refuse_unadopted_status(Oid relid, const char* const* columns, bool names_status);

inline const char* quoted(const Marker* marker, MarkerRole role) {
    return quote_identifier(NameStr(marker->columns[role].name));
}

// The marker of a row at time `clock`.
struct MarkerState {
    bool set;           // status is 1
    bool foreign;       // the status is neither 0 nor 1 nor null, so it is not a marker's
    bool live;          // set, and its deadline has not passed
    const char* holder; // null: not set, or the column is null
    TimestampTz since;  // when it was last locked or touched; DT_NOBEGIN: null
    TimestampTz until;  // DT_NOBEGIN: null
};
MarkerState marker_state(const Marker* marker, TupleDesc columns, HeapTuple tuple,
                         TimestampTz clock);
MarkerState marker_state(const Marker* marker, const RowValues& row, TimestampTz clock);

// The same without the holder, which stays null. It is not read, because it may be very long.
MarkerState marker_status(const Marker* marker, const RowValues& row, TimestampTz clock);

// A value in the type of a marker column, as an assignment converts it. A timestamp is rounded. A
// text that is too long raises 22001.
Datum marker_time(const MarkerColumn& column, TimestampTz time);
Datum marker_text(const MarkerColumn& column, const char* text);

// Whether both names are the same. A null equals no name.
bool same_holder(const char* left, const char* right);

// The holder for whom the current transaction writes: the argument of set_holder, or null.
const char* current_holder();

// Checks the name of a holder. `argument` is the name of the argument. Raises 22023 if the name is
// empty or longer than kHolderBytes.
const char* check_holder(const char* holder, const char* argument = "holder");

// How a function of the extension writes a marker. The conditions of its statement may be evaluated
// before a wait for the row. They are not evaluated again if the other transaction only locked the
// row or rolled back. So the trigger decides, which runs after the wait. It computes the deadline.
// If the marker has expired by then it skips the row, as if the statement had not found it.
enum class MarkerAction : uint8 { kLock, kTouch, kHandOver, kRelease, kForce, kTakeOver };
struct MarkerCall : WritingFunction { // whose `run` is run_marker_call
    MarkerAction action;
    Oid root;            // the table of the marker
    const char* holder;  // for whom the function writes
    const char* held_by; // whose marker it changes; `holder` too, except for kTakeOver
    int64 ttl;
    TimestampTz until; // the deadline that the statement sets, before any wait
    bool has_reason;
    bool may_shorten;  // the deadline may become earlier than the current one
    int trigger_depth; // at the statement
};

// Runs body(), which runs the function's statement, with the function's holder as the current
// holder.
void run_marker_call(const WritingFunction& function, void (*body)(void* closure), void* closure);

// The call whose own statement has fired the running trigger, on a table with this marker. Null for
// any other write, also for a write by a trigger of that row.
const MarkerCall* firing_call(const Marker* marker);

// The tables with markers in this database, a list of Oid in the current context. kEnabled and kAll
// are the tables where markers were enabled, in schemas that the current user may use, or in all
// schemas. kStored are the tables that store the rows: partitions instead of their parents.
enum class MarkerTables { kEnabled, kAll, kStored };
List* marker_tables(MarkerTables which);

void define_marker_settings();

} // namespace interlock::marker
