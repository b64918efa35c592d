// Field ownership: each column has a writer who may change it, or is shared under a strategy.
//
// The rules are the arguments of a BEFORE UPDATE trigger, triples of column, kind and value. It
// runs after every other BEFORE trigger, so that it checks the row as it will be stored: a column
// whose value changes is claimed, also if a trigger changed it, and one that stays the same claims
// nothing. Columns are known by their names of the day; after an owned column was dropped, every
// update is refused until it is released; after one of a group was, every merge of the others.
//
// Strategies and groups define how try_versioned_update merges columns that both writers changed.
//
// Isolation: under READ COMMITTED the old row is the newest committed one, after any wait; under
// REPEATABLE READ and above a row that changed after the snapshot is 40001. A change of the rules
// waits for writers of the table, and holds for every statement that begins after it.
//
// SQLSTATEs of an update: IL007 a column belongs to another writer; 55000 an owned column is gone,
// or another trigger fires after ours.
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
    AttrNumber column; // InvalidAttrNumber when it is gone, or the server computes it
    Access access;
    OnViolation on_violation; // of an owned column
    const char* writer;       // of an owned column
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
    const char* gone;           // an owned column that the table does not have
    const ColumnRule** checked; // owned columns that no trigger of ours maintains
    int checked_count;
    AttrNumber last_checked; // the highest number among them
};

// Reads the arguments of a trigger; false when they are not as the functions that declare rules
// write them.
bool read_rules(const Trigger* trigger, ColumnRules* rules);
List* trigger_arguments(const ColumnRules& rules);
extern const Mechanism kOwnershipMechanism;

const char* on_violation_name(OnViolation on_violation);
const char* strategy_name(Strategy strategy);

// Null when no column has a rule.
extern int ownership_part;
inline const Ownership* ownership_of(const TableInfo* info) {
    return part_of<const Ownership>(info, ownership_part);
}

void load_ownership(TableInfo* info, const Trigger* trigger);

// Every writer of the row moves the columns that our triggers maintain.
void check_owned_columns(TableInfo* info);

// The rules as a trigger needs them; raises 55000 when they cannot be applied.
const Ownership* usable_ownership(Relation rel, const TableInfo* info);

// A merge compares versions: changes that do not move the version would be overwritten.
[[noreturn]] void raise_merge_of_ignored(Relation rel, const char* column);

// The rule of a column, or null.
const ColumnRule* rule_of(const TableInfo* info, AttrNumber column);

// Whether the column is shared with strategy merge and counts: both sides' changes are added up.
bool is_counted(const TableInfo* info, AttrNumber column);

// Both changes of a column since `base`, merged into one value of the column's type. False when
// they cannot be merged; raises 22003 when a number leaves its range, and errors of a domain's
// constraints.
bool combine_values(const TableInfo* info, AttrNumber column, NullableDatum base,
                    NullableDatum theirs, NullableDatum mine, Datum* combined);

// Adds the columns of every group that one of `columns` is in; raises 55000 when one is missing.
Bitmapset* add_groups(const TableInfo* info, const Bitmapset* columns);

// The columns with their values in the row, as jsonb for the write log; values that are too large
// are shown by their size, and json that may be no jsonb as text.
Datum sample_of_row(TupleDesc columns, const Bitmapset* attnums, HeapTuple row);

} // namespace interlock::ownership
