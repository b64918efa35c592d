// Escrow counters: a column that many transactions change at once without waiting for each other's
// commit. docs/internals/escrow.md is the design, and names the rules E1 to E14.
//
// The configuration of a column is two triggers, ENABLE ALWAYS: BEFORE ROW for INSERT, UPDATE and
// DELETE, and BEFORE TRUNCATE. Both depend on the column and on those of the key: the server drops
// them with the column, and refuses to change a type. The column is their first argument, its
// number and those of the key's columns, then the names of these, are their last ones
// (escrow/counted_columns.h). The others of the first trigger are minimum, maximum (empty: none),
// what becomes of plain updates, and whether a fold moves the version.
//
// The parts of a counter are found by the values of these columns, whatever their names are now and
// whatever the table's key is by then. A key of other columns makes the functions that take a key
// refuse (55000) until enable_escrow is called again; without a unique index over the former
// columns, new rows are refused, too, as they could share a counter.
//
// A counter begins with the first change of a row by a function. Its parts name its id, which is
// never used again.
#pragma once

#include "table/key.h"
#include "table/relation.h"
#include "table/row_values.h"

namespace interlock::escrow {

enum class PlainUpdates : uint8 { kReject, kDelta };

struct EscrowLimits {
    int64 least;
    int64 most; // PG_INT64_MAX: none
};

struct EscrowColumn {
    const char* trigger;
    const char* twin;  // another trigger for the same; null: none, as it should be
    bool well_formed;  // its arguments are as enable_escrow writes them
    NameData label;    // the column in the arguments, by which the journal knows it: a former name
    NameData name;     // as it is now; the label where it is gone
    AttrNumber attnum; // InvalidAttrNumber: the column is gone, or the arguments are forged
    Oid type;
    int scale;          // digits behind the point
    EscrowLimits range; // of its type
    char enabled;
    PlainUpdates plain_updates;
    bool fold_moves_version;
    int key_count;          // 0: they are gone, or no types for a counter
    AttrNumber* key;        // the columns by whose values its counters go, in that order
    Bitmapset* key_columns; // the same
    const char* least_text; // as the arguments have them
    const char* most_text;
    Oid trigger_oid;
    uint64 epoch; // another one after each change of the trigger and each rewrite of the table
    EscrowColumn* next;
};

extern int escrow_part;

void load_escrow(TableInfo* info, const Trigger* trigger);

const EscrowColumn* escrow_of(const TableInfo* info, AttrNumber attnum);
const EscrowColumn* escrow_of_trigger(const TableInfo* info, const char* trigger);
const EscrowColumn* escrow_of_label(const TableInfo* info, const char* label); // it may be gone

// The column whose row trigger is gone, or is not as enable_escrow made it, while the other one is
// there: what the journal has of it can be added to the rows. Null: it is not there either.
const EscrowColumn* escrow_left_behind(Relation rel, const TableInfo* info, AttrNumber attnum);

// The unique index that names rows by the columns of the counters: the table's key, as a rule.
// Null: there is none now.
const UniqueKey* key_of_counters(const TableInfo* info, const EscrowColumn& column);

// Its BEFORE ROW trigger sorts after all others of ours: it takes the parts of a row that is
// written, so nothing may keep the row from being written after it.
constexpr const char* kEscrowTriggerPrefix = "zzzz_interlock_escrow";
inline bool sorts_last(const char* trigger) { return strncmp(trigger, "zzzz", 4) >= 0; }

// Raises 55000 where one was renamed and this one fires before it, 39P01 for one of two.
void require_own_trigger(Relation rel, const TableInfo* info, const EscrowColumn& column);

// Calls visit(const EscrowColumn&) for each column of the table.
template <typename Visit>
void each_escrow(const TableInfo* info, Visit&& visit) {
    for (auto* column = part_of<const EscrowColumn>(info, escrow_part); column != nullptr;
         column = column->next)
        visit(*column);
}

// The epoch of a column's counters, also for a caller that has not opened the table.
uint64 epoch_of(Oid relid, AttrNumber attnum, Oid trigger_oid);

// A trigger's arguments, as enable_escrow gives them.
enum EscrowArgument {
    kColumn,
    kLeast,
    kMost,
    kPlainUpdates,
    kMovesVersion,
    kColumnNumbers, // escrow/counted_columns.h
    kKeyColumns
};
constexpr int kTruncateColumnNumbers = 1; // of the other trigger

bool parse_plain_updates(std::string_view word, PlainUpdates* updates);
constexpr const char* kPlainUpdateWords[] = {"reject", "delta"};

// Raises 55000 for a table that was made unlogged later: a crash empties it, and not the journal.
void require_logged(Relation rel);

// The column in use: raises 55000 when it is gone, its triggers do not fire in all sessions, no
// unique index names the rows by the columns of its counters, or the table has become a partition
// or unlogged.
const EscrowColumn* usable_escrow(Relation rel, const TableInfo* info, AttrNumber attnum);

// Each raises 55000 with the way back, on which no part is lost.
[[noreturn]] void raise_column_gone(Relation rel, const EscrowColumn& column);
[[noreturn]] void raise_key_changed(Relation rel, const TableInfo* info,
                                    const EscrowColumn& column);

// The call of enable_escrow with the present settings.
const char* call_of_enable(Relation rel, const EscrowColumn& column);

// --- Amounts, as integers of the column's smallest step -----------------------------------------

EscrowLimits limits_of(const EscrowColumn& column); // within those of the type
EscrowLimits range_of_type(Oid type, int32 typmod);

// Of the types that a column may have; false for others, and for numeric without a precision or
// with more than 18 digits.
bool amount_scale(Oid type, int32 typmod, int* scale);

int64 amount_of(const EscrowColumn& column, Datum value); // a value of the column
Datum value_of(const EscrowColumn& column, int64 amount); // 22003 if it is beyond its type
Datum numeric_of(const EscrowColumn& column, int64 amount);
// As numeric_of() made it; 55000 if the column's type has lost digits since.
int64 amount_of_numeric(const EscrowColumn& column, Datum number);

// Argument n: 22023 for NaN, infinity, too many digits or too large a number.
int64 amount_argument(const Arguments& arguments, int n, const char* name,
                      const EscrowColumn& column);
int64 amount_of_argument(Datum value, const char* name, const EscrowColumn& column); // a part of it

// 22003 when it overflows.
int64 add_amounts(int64 left, int64 right);

// The most that one change may move a counter by, up or down.
constexpr int64 kMostAmount = INT64CONST(1000000000000000000);

// Of parts and reservations, which are read in no order of time: a step may leave the range of
// int64 where the end does not.
struct AmountSum {
    int64 low;   // as it wraps around
    int64 wraps; // how often it has: upwards less downwards

    void add(int64 amount);
    void add(const AmountSum& other) {
        add(other.low);
        wraps += other.wraps;
    }
    bool is_zero() const { return low == 0 && wraps == 0; }
    bool is_at_most(int64 most) const { return wraps < 0 || (wraps == 0 && low <= most); }
    bool is_within(const EscrowLimits& limits) const {
        return wraps == 0 && low >= limits.least && low <= limits.most;
    }
    int64 amount() const; // 22003 when it is out of range
};

} // namespace interlock::escrow
