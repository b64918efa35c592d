// Which code runs when a row of a table is written.
#pragma once

#include "table/info.h"

namespace interlock::inline table {

// Whether the object belongs to the server and cannot be dropped or replaced.
inline bool is_built_in(Oid object) { return object < FirstUnpinnedObjectId; }

// Fills in the metadata about this code. The triggers are the relation's own triggers or a copy.
void load_code(TableInfo* info, Relation rel, const TriggerDesc* triggers);

// Whether an INSERT runs triggers, rules, checks or defaults.
bool inserting_runs_code(Relation rel);

// Whether a new index entry needs only the server's immutable functions. Call it before the
// expressions in the relation cache are read: reading plans them, which runs code of the owner with
// the caller's rights.
bool only_computes(Relation index);

// The same for an expression.
bool only_computes(Node* expression);

// Whether an expression calls functions that do not belong to the server, or functions of a domain.
bool calls_users_code(Node* expression);

// Whether reading a value of the type calls such functions. It is true if the type contains a
// domain. It is also true for a row type, because its columns can change without an invalidation of
// the tables that use it.
bool reading_runs_code(Oid type);

} // namespace interlock::inline table
