// The foreign keys of a table, read from the catalog.
#pragma once

#include "server/server.h"

namespace interlock::children {

struct ForeignKey {
    Oid parent;
    int count;
    AttrNumber columns[INDEX_MAX_KEYS]; // columns of the child
    AttrNumber parents[INDEX_MAX_KEYS]; // columns of the parent, in the same order
};

// Calls visit(key) for each foreign key of the child. The visitor may read catalogs.
using VisitForeignKey = void (*)(void* closure, const ForeignKey& key);
void each_foreign_key(Oid child, VisitForeignKey visit, void* closure);

template <typename Visit>
void each_foreign_key(Oid child, Visit&& visit) {
    each_foreign_key(
        child,
        [](void* closure, const ForeignKey& key) {
            (*static_cast<std::remove_reference_t<Visit>*>(closure))(key);
        },
        &visit);
}

// Adds a column to a list of names, quoted where SQL needs it.
void add_column(StringInfo list, const char* name);

} // namespace interlock::children
