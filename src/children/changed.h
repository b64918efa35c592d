// The parents whose children the transaction has changed. The list follows savepoints: a rollback
// removes the parents that were noted after the savepoint. A parent that was moved after the
// savepoint must be moved again.
#pragma once

#include "children/children.h"

namespace interlock::children {

// The columns by which foreign keys name rows of a table. There is one list for the transaction.
struct ParentColumns {
    Oid table;
    int count;
    AttrNumber columns[INDEX_MAX_KEYS];
    Oid types[INDEX_MAX_KEYS]; // base type of a domain
    int16 lengths[INDEX_MAX_KEYS];
    bool by_value[INDEX_MAX_KEYS];
    // What find_parent_key() found last (children/parent.h).
    const UniqueKey* key;
    int places[INDEX_MAX_KEYS]; // place of each column of the key among these columns
    int level;
    bool has_marker;
    ParentColumns* next;
};

struct ChangedParent {
    struct Name {
        ParentColumns* by;
        uint32 hash;
        const Datum* values; // in the order of by->columns
    } name;                  // hash key
    bool noted;
    bool moved;
    Oid child;               // table of the first change
    Oid user;                // user who made it
    const char* search_path; // search_path of that user
    CommandId asked;         // last command that called ask_parent()
    Oid asked_by;            // for this user
};

// The entry of a parent. `values` are in the types of its key. The parent may not be noted yet. The
// entry is valid until the end of the transaction.
ChangedParent* changed_parent(const ChildGuard& guard, const Datum* values);

// Notes a parent that is not noted yet. The current user has changed a row of `child`.
void note_changed(ChangedParent* parent, Oid child);

// Notes that a pending parent was moved.
void note_moved(ChangedParent* parent);

inline bool is_pending(const ChangedParent& parent) { return parent.noted && !parent.moved; }

// count_pending() returns how many parents are pending. The next function calls visit(parent) for
// each of them. visit() must not note parents.
int count_pending();
using VisitParent = void (*)(void* closure, ChangedParent* parent);
void each_pending(VisitParent visit, void* closure);

} // namespace interlock::children
