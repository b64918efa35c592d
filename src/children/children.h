// Children: rows of one table that belong to a row of another, as the lines of a document do. A
// change of them moves the parent's version, and is refused while the parent's marker is another
// holder's: as a change of the parent itself.
//
// The configuration are three constraint triggers on the child's table, AFTER INSERT, UPDATE and
// DELETE FOR EACH ROW, DEFERRABLE INITIALLY DEFERRED. Their WHEN calls changes_parent() with the
// parent's table and the columns of a foreign key to it, which is true for the first change of each
// parent alone. So a statement that writes 100,000 rows of one parent queues one event. WHEN stores
// no names: the triggers follow renames and dumps.
//
// The parents are moved at the end of the transaction, or where SET CONSTRAINTS says IMMEDIATE, all
// at the first of these events and in the order of their keys: two transactions that change
// children of the same parents wait for each other and do not deadlock. Each parent is moved once
// in a transaction, and not at all where the transaction itself has inserted it or moved its
// version.
//
// Isolation: as UPDATE of the parent at the end of the transaction. Under REPEATABLE READ and
// above a parent that changed after the snapshot is 40001.
#pragma once

#include "table/relation.h"

namespace interlock::children {

// How a value of the foreign key becomes one of the parent's key.
// kAsked: as the catalog has it for each value, for casts of users, who can drop them and their
// functions.
enum class KeyCast : uint8 { kSame, kInteger, kCalls, kByText, kNone, kAsked };

struct ChildColumn {
    AttrNumber column; // of the child
    AttrNumber parent; // of the parent
    Oid type;          // below any domain, of the child; and
    Oid parent_type;   // of the parent
    int16 length;      // of that
    bool by_value;
    KeyCast cast;
    FmgrInfo function; // kCalls
};

enum ChildEvent { kChildInserts, kChildUpdates, kChildDeletes, kChildEvents };

struct ChildGuard {
    Oid parent;
    Oid root;      // the table it is enabled on: this one, or one that this is a partition of
    bool is_clone; // the triggers belong to the partitioned parent
    bool has_key;  // there is a foreign key over these columns to the parent
    int count;     // of columns; zero: a trigger that guard_children did not make
    ChildColumn* columns;
    const char* triggers[kChildEvents]; // their names, null where one is missing
};

struct ChildGuards {
    ChildGuard* first;
    int count;
    const ChildGuard* begin() const { return first; }
    const ChildGuard* end() const { return first + count; }
};

extern const Mechanism kChildrenMechanism;

// Those of a table.
extern int children_part;
inline ChildGuards guards_of(const TableInfo* info) {
    const auto* guards = part_of<const ChildGuards>(info, children_part);
    return guards != nullptr ? *guards : ChildGuards{};
}

// The name of the function in WHEN, and what it stands in.
constexpr const char* kChangesParent = "changes_parent";

// Its call as WHEN has it, with the columns as Vars; null for another expression.
const FuncExpr* call_in_when(Node* expression);

// What such a call has as arguments, and at which place; -1 for what it does not have.
struct CallShape {
    Oid parent;
    int count; // of the columns of the foreign key
    AttrNumber columns[INDEX_MAX_KEYS];
    int old_values; // of the first column; the others follow
    int new_values;
    int table;     // tableoid
    int old_place; // ctid
    int new_place;
};

// False when it is not as guard_children writes it. The sides are the numbers that OLD and NEW have
// in the expression.
bool read_call(const FuncExpr* call, int old_side, int new_side, CallShape* shape);

// The same for WHEN of a trigger; false when that is no call of ours.
bool read_when(const Trigger* trigger, CallShape* shape);

// Fills in the part: a trigger's arguments, then what the catalogs say.
void load_guard(TableInfo* info, const Trigger* trigger);
void load_foreign_keys(TableInfo* info);

// How the server compares the two in a foreign key (ATAddForeignKeyConstraint): the types have an
// operator in common, or the child's is cast to the parent's. kCalls: by the function.
KeyCast key_cast(Oid from, Oid to, Oid* function);

// The guard of that parent over these columns; null when there is none.
const ChildGuard* find_guard(const TableInfo* info, const CallShape& shape);

// Raises 55000 when the foreign key is gone.
void require_foreign_key(Relation child, const TableInfo* info, const ChildGuard& guard);

// How many tables a change of the table's rows goes up through: 0 for one that is no child. Raises
// 55000 above kMostLevels, where they go in a circle.
constexpr int kMostLevels = 16;
int levels_above(Oid table);

} // namespace interlock::children
