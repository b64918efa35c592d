// Triggers that call the functions of the extension: finding them, and what a trigger function may
// rely on.
#pragma once

#include "server/name_list.h"

namespace interlock::inline table {

// Whether a trigger with this tgenabled fires in this session as it is now
// (session_replication_role).
bool trigger_fires(char enabled);

// The relation's triggers, null if it has none: a copy, as an invalidation frees the relation's own
// whenever a catalog is read, and that is what trigger_calls() does.
const TriggerDesc* triggers_of(Relation rel);

// How many arguments it has. The catalog keeps the number in 16 bits, where that of a trigger that
// anybody made with 32,768 of them is negative (later servers refuse them); for the server, too, it
// has none then.
inline int argument_count(const Trigger* trigger) { return Max(0, trigger->tgnargs); }

// Whether the trigger calls interlock_internal.<name>. It reads catalogs.
bool trigger_calls(const Trigger* trigger, const char* function_name);

// The table the trigger was created for: this one, or one that this is a partition of.
Oid root_of_trigger(Oid relid, const Trigger* trigger);

// The first trigger of the function in the order of names; with an argument, the one that has it as
// its first. Null: there is none.
const Trigger* find_trigger(Relation rel, const char* function_name,
                            const char* argument = nullptr);

// Its name, by whatever name it goes, or that of the one to create: prefix and column. A name that
// would be too long ends in a hash, so that columns that begin alike do not share it. Raises 42710
// as below.
const char* column_trigger_name(Relation rel, const char* prefix, const char* function_name,
                                const char* column);

// The command that drops it; null: there is none.
char* drop_of_column_trigger(Relation rel, const char* function_name, const char* column);

// Raises 42710 when another trigger has the name that we would use. CREATE OR REPLACE would replace
// it.
void refuse_taken_trigger(Relation rel, const char* trigger, const char* subject);

// Raises 55000 when a concept is enabled on a partition through its parent: it is configured there.
void refuse_partition(Relation rel, bool is_clone);

// What is kept of a trigger that configures a concept, in front of what its arguments say.
struct OwnTrigger {
    Oid trigger_oid;
    const char* trigger; // its name
    const char* twin;    // another trigger for the same; null: none, as it should be
    Oid root;            // the table it is enabled on: this one, or one that this is a partition of
    char enabled;        // tgenabled
    bool is_clone;       // the trigger belongs to the partitioned parent
    bool well_formed;    // its arguments are as the enabling function writes them
};
OwnTrigger own_trigger(Oid relid, const Trigger* trigger);

// Raises 39P01 for a trigger that calls one of our functions and is not as interlock.<maker>
// creates it. Any role can create a trigger with any arguments on a table of its own. So loading
// the metadata raises nothing, else such a table would break views and sweeps; using the trigger
// raises this.
[[noreturn]] void raise_forged(Relation rel, const char* trigger, const char* maker);

// Raises the same for two triggers where interlock.<maker> creates one.
[[noreturn]] void raise_twins(Relation rel, const char* first, const char* second,
                              const char* maker);

// Raises 39P01 for a trigger that interlock.<maker> has not made, and for one of two. Null: the
// trigger is gone.
void require_own(Relation rel, const OwnTrigger* own, const char* maker);

// The name of the trigger to create or replace: that of the one that is there, which may have been
// renamed, or `name`. Raises 42710 as below, 39P01 for one of two.
const char* name_to_create(Relation rel, const OwnTrigger* present, const char* name,
                           const char* subject, const char* maker);

// The arguments from one on.
NameList arguments_from(const Trigger* trigger, int first);

// Arguments of a trigger, a list of texts: as SQL, and whether the trigger has these. A concept
// writes again what it has read, so that no function of ours has made a trigger whose arguments
// differ from that.
char* arguments_sql(const List* arguments);
bool has_arguments(const Trigger* trigger, const List* arguments);
List* add_argument(List* arguments, const char* text);
List* add_names(List* arguments, const NameList& names);

// Whether a column can have that name.
bool is_name(const char* text);

// A name among a trigger's arguments, truncated between characters where it is longer than
// NAMEDATALEN.
void name_argument(const Trigger* trigger, int n, NameData* name);

// The call of a BEFORE or AFTER ROW trigger function on a table; raises 39P01 when it is called in
// any other way.
TriggerData* row_trigger(FunctionCallInfo fcinfo, const char* function_name,
                         TriggerEvent timing = TRIGGER_EVENT_BEFORE);

// Whether the trigger fires for a row that pg_restore loads. With -j it creates the triggers of a
// partitioned table when the data of its partitions may be still to come: such a row was checked
// and recorded where it was dumped. It is one of a partition without any index, which the same
// transaction has truncated, and which the current user owns, also outside of SECURITY DEFINER
// functions: the owner of a table may disable its triggers.
bool fires_in_restore(const TriggerData* trigger);

// The same of an INSERT into a partition whose triggers belong to `root`.
bool is_loaded_by_restore(Relation rel, Oid root);

// Whether the current user owns the table, and the session's user as SET ROLE has it: not in a
// function that runs with the owner's rights for other roles.
bool session_owns(Oid relid);

// How many triggers the session is inside of.
int trigger_depth();

} // namespace interlock::inline table
