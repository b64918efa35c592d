// Field ownership: each column has a writer who may change it, or is shared under a strategy.
//
// The rules are the arguments of a BEFORE UPDATE trigger: triples of column, kind and value. The
// trigger runs after the BEFORE triggers of others, so it checks the row as it will be stored, and
// before those of the other concepts, which check the row without the skipped values. A column
// counts as written if its value changes, also if a trigger changed it.
//
// The rules name columns by their current names. After an owned column was dropped, every update is
// refused until the column is released. After a column of a group was dropped, every merge of the
// group's other columns is refused.
//
// A column that is owned once changed is free in each row until its writer changes it there. The
// column value_writers of the table has the names of such columns with their writers. It follows
// the row through updates of the key, dumps and partitions. The trigger alone changes it, so a
// value that a statement gives for it is ignored. release_values() frees the columns of a row.
//
// Strategies and groups define how try_versioned_update merges columns that both writers changed.
//
// Isolation: under READ COMMITTED the old row is the newest committed one, after any wait. Under
// REPEATABLE READ and above, a row that changed after the snapshot raises 40001. A change of the
// rules waits for writers of the table, and applies to every statement that begins after it.
//
// SQLSTATEs of an update: IL007 if a column belongs to another writer. 55000 if an owned column is
// gone, or if another trigger fires after ours.
#pragma once

#include "statement/blind_updates.h"
#include "table/relation.h"
#include "table/trigger.h"

namespace interlock::ownership {

enum class Access : uint8 { kFree, kOwned, kShared };
enum class OnViolation : uint8 { kReject, kSkip };
enum class Strategy : uint8 { kRetry, kSkip, kMerge };

// The rules of one column.
struct ColumnRule {
    const char* name;
    AttrNumber column; // InvalidAttrNumber: the column is gone, or the server computes it
    Access access;
    OnViolation on_violation; // of an owned column
    const char* writer;       // of an owned column
    bool once_changed;        // it is owned in the rows in which the writer has changed it
    Strategy strategy;        // of a shared column
    int group;                // zero: none
    BlindUpdates blind_updates;
};

struct ColumnRules {
    ColumnRule* rules;
    int count;
};

struct Ownership : OwnTrigger {
    ColumnRules rules;
    const ColumnRule* gone;     // of an owned column that the table no longer has
    const ColumnRule** checked; // owned columns that no trigger of the extension maintains
    int checked_count;
    AttrNumber last_checked;  // the highest number among them, and value_writers
    bool has_value_writers;   // a column is owned once changed
    AttrNumber value_writers; // InvalidAttrNumber: the column is gone or has another type
};

// Reads the arguments of a trigger. Returns false if no function of the extension writes such
// arguments.
bool read_rules(const Trigger* trigger, ColumnRules* rules);
List* trigger_arguments(const ColumnRules& rules);
extern const Mechanism kOwnershipMechanism;

// Whether the extension can keep the writers of values in the column.
bool is_value_writers(Form_pg_attribute column);

const char* on_violation_name(OnViolation on_violation);
const char* strategy_name(Strategy strategy);

// The writers of the values of a row: an object of columns with their writers.
constexpr const char* kValueWriters = "value_writers";

// The facet. Null if no column has a rule.
extern int ownership_facet;
inline const Ownership* ownership_of(const TableInfo* info) {
    return facet_of<const Ownership>(info, ownership_facet);
}

void load_ownership(TableInfo* info, const Trigger* trigger);

// Leaves out the columns that the extension's triggers maintain, because every writer of the row
// moves them.
void check_owned_columns(TableInfo* info);

// The rules for a trigger. Raises 55000 if they cannot be applied.
const Ownership* usable_ownership(Relation rel, const TableInfo* info);

// Raises an error: a merge compares versions, so a change that does not move the version would be
// overwritten.
[[noreturn]] void raise_merge_of_ignored(Relation rel, const char* column);

// The rule of a column. Null if it has none.
const ColumnRule* rule_of(const TableInfo* info, AttrNumber column);

// Whether the column is shared with strategy merge and is a counter, so that the changes of both
// sides are added.
bool is_counted(const TableInfo* info, AttrNumber column);

// Merges both changes of a column since `base` into one value of the column's type. Returns false
// if they cannot be merged. Raises 22003 if a number is out of range, and the errors of a domain's
// constraints.
bool combine_values(const TableInfo* info, AttrNumber column, NullableDatum base,
                    NullableDatum theirs, NullableDatum mine, Datum* combined);

// Adds the columns of every group that has one of `columns`. Raises 55000 if a column of the group
// is missing.
Bitmapset* add_groups(const TableInfo* info, const Bitmapset* columns);

// The columns with their values in the row, as jsonb for the write log. For a value that is too
// large it shows the size. It shows json that jsonb cannot hold as text.
Datum sample_of_row(TupleDesc columns, const Bitmapset* attnums, HeapTuple row);

} // namespace interlock::ownership
