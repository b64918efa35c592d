// What the extension knows of a table: its key, its columns, and the concepts enabled on it.
//
// The configuration of a table is the arguments of our triggers on it. The server therefore keeps
// it: it follows renames, partitions and dumps, goes with the table, and is cached per session
// until the relation changes.
#pragma once

#include "server/server.h"

namespace interlock {

struct ColumnDefault;
struct KeptRows;
struct LaterTrigger;
struct History;
struct HistoryTable;
struct Versioning;
struct LeaseRequirement;
struct StateMachine;
struct Marker;
struct Ownership;

struct KeyColumn {
    AttrNumber attnum;
    Oid type; // below any domain
    Oid collation;
    Oid io_parameter;
    FmgrInfo input;
    FmgrInfo compare;   // three-way comparison of the index's operator family
    FmgrInfo equal;     // what the operator calls
    const char* equals; // "OPERATOR(schema.=)", safe under any search_path
};

struct TableCheck {
    Expr* expression; // null when it is not enforced
    bool planned;     // once for all statements
};

enum class AsMade : uint8 { kUnknown, kYes, kNo };

struct RelationFacts {
    Oid relid;
    bool valid;
    MemoryContext memory;
    TupleDesc columns;
    int key_count; // zero when the table has no usable unique key
    Oid key_index;
    KeyColumn* keys;
    Bitmapset* key_columns; // attribute numbers
    Versioning* versioning; // null when not enabled
    Marker* marker;         // null when not enabled
    Ownership* ownership;   // null when no column has a rule
    StateMachine* machines;
    int machine_count;
    LeaseRequirement* requirements;
    int requirement_count;
    History* history;             // null when not enabled
    HistoryTable* history_table;  // of a plain history
    Bitmapset* partition_columns; // of a partition with checks: they decide what fits into it
    Oid partition_root;           // the partitioned table at the top of those
    const char* first_check;      // the first of our BEFORE ROW triggers; null: none
    LaterTrigger* later;          // BEFORE triggers of others after it (execution/last_word.h)
    int later_count;
    int index_count;
    int unique_count; // of the indexes
    bool runs_code;   // an INSERT runs triggers, rules, checks or defaults
    bool judged; // an UPDATE runs no code before it is done but judge() (execution/row_change.h)
    TableCheck* checks; // of the constraints in `columns`
    FmgrInfo populate;  // jsonb_populate_record for the row type
    bool populate_reusable;
    mutable Oid floor; // as it was found last (version/floor.h)
    mutable ColumnDefault*
        defaults;           // by column, null before the first use (execution/column_default.cpp)
    mutable AsMade as_made; // of one of our own tables (execution/unmodified.cpp)
    mutable KeptRows* kept_rows; // of idempotency's small tables (idempotency/kept.h)
    mutable AsMade runs_ours;    // of interlock.idempotency (idempotency/access.h)
};

void initialize_relation_cache();

// The facts of an open relation. The pointer stays good until the end of the transaction, though a
// change of the relation may make a later call return new facts.
const RelationFacts* facts_of(Relation rel);

// Those that are kept and still right, else null: for who has not opened the relation.
const RelationFacts* kept_facts(Oid relid);

// Opens a table a verb may write: an ordinary or partitioned table, not a catalog. Raises 22004 or
// 42809, 42P01 before it locks anything when there is no such table, and 42501 when the caller may
// neither update nor delete (for AccessShareLock: read) any of it: before it locks anything, and
// again when that has changed while it waited. The lock stays until the end of the transaction.
Relation open_table(Oid relid, LOCKMODE mode);

// As open_table, for a verb that configures the table: only its owner may (42501).
Relation open_own_table(Oid relid, LOCKMODE mode);

// Closes the relation and keeps its lock.
inline void close_table(Relation rel) { table_close(rel, NoLock); }

// Raises 55000 when the table has no key that names one row.
void require_key(Relation rel, const RelationFacts* facts);

// The names of the key's columns in their order, without a look at what is kept of the table; NIL
// if it has no key.
List* key_column_names(Oid relid);
List* key_column_names(Relation rel);

// The column's number, 42703 when there is none of that name, 42703 for system columns too.
AttrNumber column_number(Relation rel, const char* name);

// Raises 42703 for a name that no column can have: an empty one, or that of a system column.
void require_column_name(Relation rel, const char* name);

// The column's number, InvalidAttrNumber when there is none of that name.
AttrNumber find_attribute(TupleDesc columns, std::string_view name);

// schema.table, quoted.
char* qualified_name(Relation rel);
char* qualified_name(Oid relid);

// For hints: the statement that calls a function of the API with the table alone.
char* call_for(const char* function, Relation rel);
inline const char* column_name(const RelationFacts* facts, AttrNumber attnum) {
    return NameStr(TupleDescAttr(facts->columns, attnum - 1)->attname);
}

// "OPERATOR(schema.name)" for use in SQL text.
char* operator_text(Oid operator_oid);

// What a statement on the table's own rows names. Rows of tables that inherit from it are not among
// them: they have the same keys, and none of its triggers.
char* rows_of(Relation rel);

// Whether a trigger with this tgenabled fires in this session as it is now
// (session_replication_role).
bool trigger_fires(char enabled);

// The relation's triggers, null if it has none: a copy, as an invalidation frees the relation's own
// whenever a catalog is read, and that is what trigger_calls() does.
const TriggerDesc* triggers_of(Relation rel);

// Whether the trigger calls interlock.<name>. It reads catalogs.
bool trigger_calls(const Trigger* trigger, const char* function_name);

// The table the trigger was created for: this one, or one that this is a partition of.
Oid root_of_trigger(Oid relid, const Trigger* trigger);

// Raises 42710 when the name we would give a trigger is that of another one. CREATE OR REPLACE
// would replace it.
void refuse_taken_trigger(Relation rel, const char* trigger, const char* subject);

// Raises 55000 when a concept is enabled on a partition through its parent: it is configured there.
void refuse_partition(Relation rel, bool is_clone);

// Raises 39P01 for a trigger that calls one of our functions and is not as interlock.<maker>
// creates it. Anybody can create a trigger with any arguments on a table of his: reading them for
// the facts raises nothing, so that the table is in nobody else's way, and who uses the trigger
// gets this.
[[noreturn]] void raise_forged(Relation rel, const char* trigger, const char* maker);

// A name among a trigger's arguments, cut between characters where it is longer than names are.
void name_argument(const Trigger* trigger, int n, NameData* name);

// The call of a BEFORE or AFTER ROW trigger function on a table; raises 39P01 when it is called in
// any other way.
TriggerData* row_trigger(FunctionCallInfo fcinfo, const char* function_name,
                         TriggerEvent timing = TRIGGER_EVENT_BEFORE);

// Whether the trigger fires for a row that pg_restore loads. With -j it creates the triggers of a
// partitioned table when the data of its partitions may be still to come: such a row was checked
// and recorded where it was dumped. It is one of a partition without any index, which the same
// transaction has truncated, and which the current user owns, also outside of SECURITY DEFINER
// functions: whoever owns a table may disable its triggers.
bool fires_in_restore(const TriggerData* trigger);

} // namespace interlock
