// The parents whose children the transaction has changed. It follows savepoints: what is rolled
// back was never noted, and what was moved since is to be moved again.
#pragma once

#include "children/children.h"

namespace interlock::children {

// The columns by which foreign keys name rows of a table. One for the transaction.
struct ParentColumns {
    Oid table;
    int count;
    AttrNumber columns[INDEX_MAX_KEYS];
    Oid types[INDEX_MAX_KEYS]; // below any domain
    int16 lengths[INDEX_MAX_KEYS];
    bool by_value[INDEX_MAX_KEYS];
    // As they were found last (children/parent.h).
    const UniqueKey* key;
    int places[INDEX_MAX_KEYS]; // of the key's columns among these
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
    Oid child;               // where the first change was,
    Oid user;                // who made it, and
    const char* search_path; // under which
    CommandId asked;         // the last that has asked the parent,
    Oid asked_by;            // and for whom
};

// The entry of a parent, in the types of its key; it may not be noted yet. Valid until the end of
// the transaction.
ChangedParent* changed_parent(const ChildGuard& guard, const Datum* values);

// Of one that is not noted; the current user has changed a row of `child`.
void note_changed(ChangedParent* parent, Oid child);

// Of one that is pending.
void note_moved(ChangedParent* parent);

inline bool is_pending(const ChangedParent& parent) { return parent.noted && !parent.moved; }

// How many are pending, and calls visit(parent) for each. It notes nothing.
int count_pending();
using VisitParent = void (*)(void* closure, ChangedParent* parent);
void each_pending(VisitParent visit, void* closure);

} // namespace interlock::children
