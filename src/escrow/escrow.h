// Escrow counters: a column that many transactions change at the same time without waiting for each
// other's commit. docs/internals/escrow.md has the design and the rules E1 to E17.
//
// The configuration of a column is two triggers, ENABLE ALWAYS: BEFORE ROW for INSERT, UPDATE and
// DELETE, and BEFORE TRUNCATE. Both depend on the column and on the columns of the key: the server
// drops them with the column, and refuses to change a type. The first argument of each trigger is
// the column. The last arguments are the numbers of the column and of the key's columns, then the
// names of the key's columns (escrow/counted_columns.h). The first trigger also has minimum,
// maximum (empty: none), the treatment of plain updates, whether a fold moves the version, and who
// is notified of returns.
//
// The parts of a counter are found by the values of these columns, whatever their names and the
// table's key are now. If the table's key has other columns, the functions that take a key raise
// 55000 until enable_escrow is called again. If there is no unique index over the former columns,
// new rows are refused too, because two rows could share a counter.
//
// A counter begins with the first change of a row by a function. Its parts have its id, which is
// never used again.
#pragma once

#include "server/notify.h"
#include "table/key.h"
#include "table/relation.h"
#include "table/row_values.h"
#include "table/trigger.h"

namespace interlock::escrow {

enum class PlainUpdates : uint8 { kReject, kDelta };

struct EscrowLimits {
    int64 least;
    int64 most; // PG_INT64_MAX: no limit
};

// The arguments of the row trigger, except for the columns (escrow/counted_columns.h).
struct EscrowSettings {
    const char* label; // the column's name when counters were enabled
    const char* least_text;
    const char* most_text; // empty: no limit
    PlainUpdates plain_updates;
    bool fold_moves_version;
    Notify notify; // of returns (escrow/notify.h)
    const char* numbers;
    NameList key; // the names of its columns
};

// Returns false if enable_escrow does not write such arguments.
bool read_settings(const Trigger* trigger, EscrowSettings* settings);
List* trigger_arguments(const EscrowSettings& settings);
extern const Mechanism kEscrowMechanism;

struct EscrowColumn : OwnTrigger {
    NameData label;    // the column's name when counters were enabled; the journal uses it
    NameData name;     // the current name; the label if the column is gone
    AttrNumber attnum; // InvalidAttrNumber: the column is gone, or the arguments are forged
    Oid type;
    int scale;          // digits after the decimal point
    EscrowLimits range; // of its type
    PlainUpdates plain_updates;
    bool fold_moves_version;
    Notify notify;
    int key_count;          // 0: the columns are gone, or their types are unsuitable
    AttrNumber* key;        // the columns whose values identify its counters, in that order
    Bitmapset* key_columns; // the same
    const char* least_text; // as in the arguments
    const char* most_text;
    uint64 epoch; // changes with each change of the trigger and each rewrite of the table
    EscrowColumn* next;
};

extern int escrow_facet;

void load_escrow(TableInfo* info, const Trigger* trigger);

const EscrowColumn* escrow_of(const TableInfo* info, AttrNumber attnum);
const EscrowColumn* escrow_of_trigger(const TableInfo* info, const char* trigger);
const EscrowColumn* escrow_of_label(const TableInfo* info, const char* label); // may be gone

// A column whose TRUNCATE trigger exists, but whose row trigger is missing or differs from what
// enable_escrow creates. The parts in the journal can still be added to the rows. Null if the
// TRUNCATE trigger is missing too.
const EscrowColumn* escrow_left_behind(Relation rel, const TableInfo* info, AttrNumber attnum);

// The unique index that names rows by the columns of the counters, usually the table's key. Null if
// there is none now.
const UniqueKey* key_of_counters(const TableInfo* info, const EscrowColumn& column);

// The name of a counter's BEFORE ROW trigger sorts after all other triggers of the extension. The
// trigger folds the parts of the row that is written, so no later trigger may suppress the write.
constexpr const char* kEscrowTriggerPrefix = "zzzz_interlock_escrow";
inline bool sorts_last(const char* trigger) { return strncmp(trigger, "zzzz", 4) >= 0; }

// Raises 55000 if a trigger was renamed so that this one fires before it, and 39P01 if there are
// two triggers.
void require_own_trigger(Relation rel, const TableInfo* info, const EscrowColumn& column);

// Calls visit(const EscrowColumn&) for each column of the table.
template <typename Visit>
void each_escrow(const TableInfo* info, Visit&& visit) {
    for (auto* column = facet_of<const EscrowColumn>(info, escrow_facet); column != nullptr;
         column = column->next)
        visit(*column);
}

// The epoch of a column's counters. For callers that have not opened the table, too.
uint64 epoch_of(Oid relid, AttrNumber attnum, Oid trigger_oid);

// The arguments of a trigger, as enable_escrow writes them.
enum EscrowArgument {
    kColumn,
    kLeast,
    kMost,
    kPlainUpdates,
    kMovesVersion,
    kNotify,
    kColumnNumbers, // escrow/counted_columns.h
    kKeyColumns
};
constexpr int kTruncateColumnNumbers = 1; // in the other trigger

bool parse_plain_updates(std::string_view word, PlainUpdates* updates);
constexpr const char* kPlainUpdateWords[] = {"reject", "delta"};

// Raises 55000 for a table that was made unlogged later. A crash would empty the table and not the
// journal.
void require_logged(Relation rel);

// The column. Raises 55000 if it is gone, or if its triggers do not fire in all sessions. Also
// raises 55000 if no unique index names the rows by the columns of its counters, or if the table
// has become a partition or unlogged.
const EscrowColumn* usable_escrow(Relation rel, const TableInfo* info, AttrNumber attnum);

// Each raises 55000. The hint says how to repair it without losing a part.
[[noreturn]] void raise_column_gone(Relation rel, const EscrowColumn& column);
[[noreturn]] void raise_key_changed(Relation rel, const TableInfo* info,
                                    const EscrowColumn& column);

// The call of enable_escrow with the current settings.
const char* call_of_enable(Relation rel, const EscrowColumn& column);

// --- Amounts, in steps of the column -------------------------------------------------------------

EscrowLimits limits_of(const EscrowColumn& column); // within the limits of the type
EscrowLimits range_of_type(Oid type, int32 typmod);

// The scale of a column type. Returns false for a type that a counter cannot have. These include
// numeric without a precision or with more than 18 digits.
bool amount_scale(Oid type, int32 typmod, int* scale);

int64 amount_of(const EscrowColumn& column, Datum value); // a value of the column
Datum value_of(const EscrowColumn& column, int64 amount); // raises 22003 if it exceeds the type
Datum numeric_of(const EscrowColumn& column, int64 amount);
// The reverse of numeric_of(). Raises 55000 if the column's type has fewer digits now.
int64 amount_of_numeric(const EscrowColumn& column, Datum number);

// Argument n. Raises 22023 for NaN, infinity, too many digits, or too large a number.
int64 amount_argument(const Arguments& arguments, int n, const char* name,
                      const EscrowColumn& column);
// amount_argument() calls this for the value.
int64 amount_of_argument(Datum value, const char* name, const EscrowColumn& column);

// Raises 22003 if the sum overflows.
int64 add_amounts(int64 left, int64 right);

// The largest amount by which one change may move a counter, up or down.
constexpr int64 kMostAmount = INT64CONST(1000000000000000000);

// The sum of parts and reservations, which are read in no particular order. An intermediate sum may
// be out of the range of int64 although the final sum is not.
struct AmountSum {
    int64 low;   // the sum with wraparound
    int64 wraps; // the number of wraparounds: upwards minus downwards

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
    int64 amount() const; // raises 22003 if it is out of range
};

} // namespace interlock::escrow
