// Children: rows of one table that belong to a row of another table, such as the lines of a
// document. A change of a child moves the parent's version. It is refused while another holder has
// the parent's marker, like a change of the parent itself.
//
// The configuration is three constraint triggers on the child's table, AFTER INSERT, UPDATE and
// DELETE FOR EACH ROW, DEFERRABLE INITIALLY DEFERRED. Their WHEN calls changes_parent() with the
// parent's table and the columns of a foreign key to it. The call is true only for the first change
// of each parent. So a statement that writes 100,000 rows of one parent queues one event. WHEN
// stores no names, so the triggers follow renames and dumps.
//
// The parents are moved at the end of the transaction, or when SET CONSTRAINTS says IMMEDIATE. The
// first of these events moves all of them, in the order of their keys. So two transactions that
// change children of the same parents wait for each other and do not deadlock. Each parent is moved
// once in a transaction. It is not moved if the transaction itself has inserted it or moved its
// version.
//
// Isolation: as an UPDATE of the parent at the end of the transaction. Under REPEATABLE READ and
// above, a parent that changed after the snapshot raises 40001.
#pragma once

#include "table/relation.h"

namespace interlock::children {

// How a value of the foreign key is converted to a value of the parent's key. kAsked looks the cast
// up in the catalog for each value. It is for casts that users have created, because they can drop
// these casts and their functions.
enum class KeyCast : uint8 { kSame, kInteger, kCalls, kByText, kNone, kAsked };

struct ChildColumn {
    AttrNumber column; // column of the child
    AttrNumber parent; // column of the parent
    Oid type;          // base type of the child's column
    Oid parent_type;   // type of the parent's column
    int16 length;      // length of the parent's type
    bool by_value;
    KeyCast cast;
    FmgrInfo function; // kCalls
};

enum ChildEvent { kChildInserts, kChildUpdates, kChildDeletes, kChildEvents };

struct ChildGuard {
    Oid parent;
    Oid root;      // the table where it is enabled: this one, or a parent of this partition
    bool is_clone; // the triggers belong to the partitioned parent
    bool has_key;  // there is a foreign key over these columns to the parent
    int count;     // number of columns
    ChildColumn* columns;
    const char* triggers[kChildEvents]; // their names; null: missing
};

extern const Mechanism kChildrenMechanism;

// The guards of a table.
extern int children_facet;
inline FacetList<ChildGuard> guards_of(const TableInfo* info) {
    return list_of<ChildGuard>(info, children_facet);
}

// The name of the function in WHEN, and the schema that it is in.
constexpr const char* kChangesParent = "changes_parent";

// The call of that function in WHEN, with the columns as Vars. Null for another expression.
const FuncExpr* call_in_when(Node* expression);

// The arguments of such a call, and their places. -1: the call does not have the argument.
struct CallShape {
    Oid parent;
    int count; // number of columns of the foreign key
    AttrNumber columns[INDEX_MAX_KEYS];
    int old_values; // of the first column; the others follow
    int new_values;
    int table;     // tableoid
    int old_place; // ctid
    int new_place;
};

// Reads a call. Returns false if guard_children does not write such a call. `old_side` and
// `new_side` are the numbers of OLD and NEW in the expression.
bool read_call(const FuncExpr* call, int old_side, int new_side, CallShape* shape);

// What a trigger says. It has no arguments.
struct ChildSettings {
    CallShape call; // in its WHEN
    ChildEvent event;
};

// Returns false if guard_children does not create such a trigger.
bool read_settings(const Trigger* trigger, ChildSettings* settings);

// Fills in the facet from a trigger, and then from the catalogs.
void load_guard(TableInfo* info, const Trigger* trigger);
void load_foreign_keys(TableInfo* info);

// How the server compares two columns of a foreign key (ATAddForeignKeyConstraint). Either the
// types have an operator in common, or the child's value is cast to the parent's type. For kCalls,
// *function is the cast's function.
KeyCast key_cast(Oid from, Oid to, Oid* function);

// The guard of that parent over these columns. Null if there is none.
const ChildGuard* find_guard(const TableInfo* info, const CallShape& shape);

// Raises 55000 if the foreign key is gone. Raises 0A000 on a shard, whose foreign key leads to a
// shard and not to the parent.
void require_foreign_key(Relation child, const TableInfo* info, const ChildGuard& guard);

// How many levels of tables a change of the table's rows moves: 0 for a table that is no child.
// Raises 55000 above kMostLevels, which happens if the tables form a circle.
constexpr int kMostLevels = 16;
int levels_above(Oid table);

} // namespace interlock::children
