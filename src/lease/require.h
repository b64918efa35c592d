// Required leases: every write to a row of a table needs an asserted, exclusive lease that covers
// the row's key.
//
// The requirement is the arguments of an AFTER ROW trigger: the template of the lease's key, and
// the columns whose change needs the lease (none: all). The trigger runs after the write, so it
// checks the row as it is stored, after other triggers and generated columns. The check uses only
// memory of the session (has_pinned() in lease/lease.h).
//
// SQLSTATEs of a write: IL006 if no such lease is asserted. 22004 for a null and 22023 for a value
// that cannot be in a lease's key. 55000 if the columns no longer match.
#pragma once

#include "table/relation.h"
#include "table/trigger.h"

namespace interlock::lease {

// A literal text, and the column whose value follows it.
struct TemplatePiece {
    const char* text;
    const char* name; // null: no column follows
    AttrNumber column;
    Oid type; // base type of a domain
    FmgrInfo output;
};

struct LeaseTemplate {
    TemplatePiece* pieces;
    int count; // zero: the template is malformed
};

// The arguments of the trigger: the template, then the columns whose change needs the lease.
struct LeaseSettings {
    const char* key;
    LeaseTemplate pieces; // of the key
    NameList columns;     // none: every update needs the lease
};

// Returns false if require_lease does not write such arguments.
bool read_settings(const Trigger* trigger, LeaseSettings* settings);
List* trigger_arguments(const LeaseSettings& settings);
extern const Mechanism kLeaseMechanism;

struct LeaseRequirement : OwnTrigger {
    bool fits; // false: a column is gone or has another type
    LeaseTemplate key;
    Bitmapset* key_columns;
    Bitmapset* columns; // null: every update needs the lease
};

// Reads 'product:{id}/x'. {column} stands for the column's value. {{ and }} are braces.
LeaseTemplate parse_template(const char* text);

// The key with '*' for each value. Its levels are those of the key of every row.
StringInfoData sample_key(const LeaseTemplate& pieces);

// The requirements of a table.
extern int requirements_facet;
inline FacetList<LeaseRequirement> requirements_of(const TableInfo* info) {
    return list_of<LeaseRequirement>(info, requirements_facet);
}

// The requirement of a trigger. Any role can have created the trigger, so this raises nothing.
LeaseRequirement load_requirement(const TableInfo* info, const Trigger* trigger);

} // namespace interlock::lease
