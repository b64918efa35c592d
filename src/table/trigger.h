// Triggers that call the functions of the extension: finding them, and what a trigger function may
// rely on.
#pragma once

#include "server/name_list.h"

namespace interlock::inline table {

// Whether a trigger with this tgenabled fires in this session (session_replication_role).
bool trigger_fires(char enabled);

// The relation's triggers, or null if it has none. They are a copy: reading a catalog, as
// trigger_calls() does, can free the relation's own list.
const TriggerDesc* triggers_of(Relation rel);

// The number of arguments. The catalog stores it in 16 bits. Older servers allow a trigger with
// 32,768 arguments, whose number is negative. The server treats such a trigger as one without
// arguments, and so does this.
inline int argument_count(const Trigger* trigger) { return Max(0, trigger->tgnargs); }

// Whether the trigger calls interlock_internal.<name>. It reads catalogs.
bool trigger_calls(const Trigger* trigger, const char* function_name);

// The table for which the trigger was created: this table, or a table that it is a partition of.
Oid root_of_trigger(Oid relid, const Trigger* trigger);

// The first trigger of the function in the order of names. With `argument`, the first trigger that
// has it as its first argument. Null if there is none.
const Trigger* find_trigger(Relation rel, const char* function_name,
                            const char* argument = nullptr);

// The name of the column's trigger. If there is none yet, the name of the trigger to create: prefix
// and column. A name that would be too long ends in a hash, so that columns with a similar name get
// different triggers. Raises 42710 as refuse_taken_trigger() does.
const char* column_trigger_name(Relation rel, const char* prefix, const char* function_name,
                                const char* column);

// The command that drops the column's trigger. Null if there is none.
char* drop_of_column_trigger(Relation rel, const char* function_name, const char* column);

// Raises 42710 if another trigger already has the name that we would use. CREATE OR REPLACE would
// replace it.
void refuse_taken_trigger(Relation rel, const char* trigger, const char* subject);

// Raises 55000 if a partition has the concept through its parent. It is configured on the parent.
void refuse_partition(Relation rel, bool is_clone);

// What is kept of a trigger that configures a concept. The concept adds what the arguments say.
struct OwnTrigger {
    Oid trigger_oid;
    const char* trigger; // its name
    const char* twin;    // a second trigger for the same; normally null
    Oid root;            // the table where it is enabled: this one, or a parent of this partition
    char enabled;        // tgenabled
    bool is_clone;       // the trigger belongs to the partitioned parent
    bool well_formed;    // the enabling function writes such arguments
};
OwnTrigger own_trigger(Oid relid, const Trigger* trigger);

// Raises 39P01 for a trigger that calls a function of the extension and differs from what
// interlock.<maker> creates. Any role can create a trigger with any arguments on its own table. So
// loading the metadata raises nothing, because such a table would break views and sweeps. Using the
// trigger raises this error.
[[noreturn]] void raise_forged(Relation rel, const char* trigger, const char* maker);

// Raises the same for two triggers where interlock.<maker> creates only one.
[[noreturn]] void raise_twins(Relation rel, const char* first, const char* second,
                              const char* maker);

// The name of the trigger to create or replace: the name of the existing trigger, which may have
// been renamed, else `name`. Raises 42710 as below, and 39P01 if there are two.
const char* name_to_create(Relation rel, const OwnTrigger* present, const char* name,
                           const char* subject, const char* maker);

// The arguments from number `first` on.
NameList arguments_from(const Trigger* trigger, int first);

// Functions for the arguments of a trigger, as a list of texts: the SQL text, and whether the
// trigger has these arguments. A concept writes again what it has read. If the result differs, no
// function of the extension has created the trigger.
char* arguments_sql(const List* arguments);
bool has_arguments(const Trigger* trigger, const List* arguments);
List* add_argument(List* arguments, const char* text);
List* add_names(List* arguments, const NameList& names);

// Whether a column can have that name.
bool is_name(const char* text);

// Copies a name from a trigger's arguments. A name longer than NAMEDATALEN is cut between two
// characters.
void name_argument(const Trigger* trigger, int n, NameData* name);

// The data of a call as a BEFORE or AFTER ROW trigger. Raises 39P01 if the function is called in
// any other way.
TriggerData* row_trigger(FunctionCallInfo fcinfo, const char* function_name,
                         TriggerEvent timing = TRIGGER_EVENT_BEFORE);

// Whether the trigger fires for a row that pg_restore loads. With -j, pg_restore may create the
// triggers of a partitioned table before it has loaded all partitions. The row was checked and
// recorded before it was dumped. It counts as loaded if its partition has no index, the same
// transaction has truncated the partition, and the current user owns it, also outside of SECURITY
// DEFINER functions. The owner of a table may disable its triggers in any case.
bool fires_in_restore(const TriggerData* trigger);

// The same for an INSERT into a partition whose triggers belong to `root`.
bool is_loaded_by_restore(Relation rel, Oid root);

// Whether both the current user and the session's user, as SET ROLE has set it, own the table. It
// is false in a function that runs with the owner's rights for other roles.
bool session_owns(Oid relid);

// The number of triggers that are running in this session, one inside the other.
int trigger_depth();

} // namespace interlock::inline table
