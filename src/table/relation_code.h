// Which code runs when a row of a table is written.
#pragma once

#include "table/info.h"

namespace interlock::inline table {

// Whether it is the server's own, which cannot be dropped or replaced.
inline bool is_built_in(Oid object) { return object < FirstUnpinnedObjectId; }

// Fills in the metadata about it. The triggers are the relation's own, or a copy.
void load_code(TableInfo* info, Relation rel, const TriggerDesc* triggers);

// Whether an INSERT runs triggers, rules, checks or defaults.
bool inserting_runs_code(Relation rel);

// Whether entering a row into the index only computes: calls nothing but the server's immutable
// functions. Call it before the expressions of the relation cache are read: it plans them, and that
// runs code of the owner with the caller's rights.
bool only_computes(Relation index);

// The same for an expression.
bool only_computes(Node* expression);

// Whether an expression calls functions that are not the server's, or those of a domain.
bool calls_users_code(Node* expression);

// Whether reading a value of the type does: the type has a domain in it. Or a row type, whose
// columns change without an invalidation of the tables that have columns of it.
bool reading_runs_code(Oid type);

} // namespace interlock::inline table
