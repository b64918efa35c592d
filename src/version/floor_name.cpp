// Which sequence is meant by the name in a default.
//
// The default names the sequence as text, so that the table can be created before it; what the
// text means is found out when the default is evaluated. Names change: a sequence, its table or its
// schema is renamed or moved, and another sequence gets the old name. So the sequence of that name
// counts if it belongs to a column whose default has the text. Else those count that belong to such
// columns, wherever they are.

#include "version/floor.h"

#include "server/arguments.h"
#include "server/sequence.h"
#include "table/own_table.h"
#include "version/version.h"

using namespace interlock;

namespace {

// The sequence that a text was found to mean.
struct Found {
    char name[2 * (2 * NAMEDATALEN + 2) + 2]; // hash key
    Oid sequence;
    uint64 changes; // when it was found
};

// It is looked for again once any relation or schema has changed.
HTAB* found_by_name = nullptr;
uint64 catalog_changes = 0;

void note_relation_change(Datum, Oid) { catalog_changes++; }
void note_schema_change(Datum, int, uint32) { catalog_changes++; }

int64 floor_of(const char* name);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(first_version);

Datum first_version(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    int64 floor = floor_of(arguments.string(0, "floor"));
    if (floor == PG_INT64_MAX)
        ereport(ERROR,
                (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
    PG_RETURN_INT64(floor + 1);
}
}

namespace {

// --- Defaults ------------------------------------------------------------------------------------

// first_version(text)
Oid function_of_defaults() {
    Oid argument = TEXTOID;
    return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum("first_version"),
                           PointerGetDatum(buildoidvector(&argument, 1)),
                           ObjectIdGetDatum(own_schema()));
}

// The argument of a call of first_version, below the cast to the column's type; else null.
const char* name_in(const char* expression) {
    Oid function = function_of_defaults();
    auto* node = static_cast<Node*>(stringToNode(expression));
    while (IsA(node, FuncExpr)) {
        auto* call = reinterpret_cast<FuncExpr*>(node);
        if (list_length(call->args) != 1)
            return nullptr;
        auto* argument = static_cast<Node*>(linitial(call->args));
        if (call->funcid == function) {
            auto* name = reinterpret_cast<Const*>(argument);
            bool is_name = IsA(argument, Const) && !name->constisnull;
            return is_name ? TextDatumGetCString(name->constvalue) : nullptr;
        }
        node = argument;
    }
    return nullptr;
}

// --- Sequences -----------------------------------------------------------------------------------

// Of a qualified name; InvalidOid if there is none.
Oid sequence_named(const char* name) {
    List* parts;
    if (!SplitIdentifierString(pstrdup(name), '.', &parts) || list_length(parts) != 2)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("argument \"floor\" must be the name of a sequence and its schema")));
    Oid schema = get_namespace_oid(static_cast<char*>(linitial(parts)), true);
    if (!OidIsValid(schema))
        return InvalidOid;
    Oid sequence = get_relname_relid(static_cast<char*>(lsecond(parts)), schema);
    if (OidIsValid(sequence) && get_rel_relkind(sequence) != RELKIND_SEQUENCE)
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                        errmsg("\"%s\" is not a sequence", static_cast<char*>(lsecond(parts)))));
    return sequence;
}

bool has_default(Oid relid, AttrNumber column, const char* name) {
    const char* in_default = floor_name(relid, column);
    return in_default != nullptr && strcmp(in_default, name) == 0;
}

bool belongs_to_default(Oid sequence, const char* name) {
    Oid relid;
    int32 column;
    return sequenceIsOwned(sequence, DEPENDENCY_AUTO, &relid, &column) &&
           has_default(relid, static_cast<AttrNumber>(column), name);
}

// Calls visit(relid, column) for each column whose default has the text.
template <typename Visit>
void each_default(const char* name, Visit&& visit) {
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(ProcedureRelationId));
    ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(function_of_defaults()));
    Relation catalog = table_open(DependRelationId, AccessShareLock);
    SysScanDesc scan =
        systable_beginscan(catalog, DependReferenceIndexId, true, nullptr, lengthof(keys), keys);
    HeapTuple tuple;
    while (HeapTupleIsValid(tuple = systable_getnext(scan))) {
        auto* dependency = reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple));
        if (dependency->classid != AttrDefaultRelationId)
            continue;
        ObjectAddress column = GetAttrDefaultColumnAddress(dependency->objid);
        auto number = static_cast<AttrNumber>(column.objectSubId);
        if (OidIsValid(column.objectId) && has_default(column.objectId, number, name))
            visit(column.objectId, number);
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
}

// The sequences of these columns.
List* sequences_of_defaults(const char* name) {
    List* sequences = NIL;
    each_default(name, [&](Oid relid, AttrNumber column) {
        Oid sequence = floor_of_column(relid, column);
        if (OidIsValid(sequence))
            sequences = list_append_unique_oid(sequences, sequence);
    });
    return sequences;
}

// --- Reading -------------------------------------------------------------------------------------

// Anybody can make a column with this default, and a sequence that belongs to it, also a temporary
// one, or lock it. So it may only raise the start, and not so far that a row could not start any
// more.
int64 read_others(const List* sequences) {
    int64 floor = 0;
    ListCell* cell;
    foreach (cell, sequences)
        floor = Max(floor, value_if_readable(lfirst_oid(cell)));
    return Min(floor, highest_floor(TokenKind::kInteger));
}

void watch_catalogs() {
    HASHCTL control = {};
    control.keysize = sizeof(Found::name);
    control.entrysize = sizeof(Found);
    control.hcxt = TopMemoryContext;
    found_by_name =
        hash_create("interlock floors", 64, &control, HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
    CacheRegisterRelcacheCallback(note_relation_change, 0);
    CacheRegisterSyscacheCallback(NAMESPACEOID, note_schema_change, 0);
}

// InvalidOid when it has to be looked for.
Oid find_known(const char* name) {
    if (found_by_name == nullptr)
        watch_catalogs();
    auto* found = static_cast<Found*>(hash_search(found_by_name, name, HASH_FIND, nullptr));
    return found != nullptr && found->changes == catalog_changes ? found->sequence : InvalidOid;
}

void note_known(const char* name, Oid sequence, uint64 changes) {
    constexpr long kMost = 8192;
    if (hash_get_num_entries(found_by_name) >= kMost)
        return;
    auto* found = static_cast<Found*>(hash_search(found_by_name, name, HASH_ENTER, nullptr));
    found->sequence = sequence;
    found->changes = changes;
}

int64 floor_of(const char* name) {
    if (strlen(name) >= sizeof(Found::name))
        return 0; // no sequence has so long a name
    Oid known = find_known(name);
    if (OidIsValid(known))
        return value_for_reader(known);
    uint64 changes = catalog_changes;
    Oid sequence = sequence_named(name);
    if (!OidIsValid(sequence) || !belongs_to_default(sequence, name)) {
        List* others = sequences_of_defaults(name);
        if (others != NIL)
            return read_others(others);
    }
    if (!OidIsValid(sequence))
        return 0;
    note_known(name, sequence, changes);
    return value_for_reader(sequence);
}

} // namespace

namespace interlock {

bool is_in_default(const char* name) {
    bool found = false;
    each_default(name, [&](Oid, AttrNumber) { found = true; });
    return found;
}

const char* floor_name(Oid relid, AttrNumber column) {
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], Anum_pg_attrdef_adrelid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(relid));
    ScanKeyInit(&keys[1], Anum_pg_attrdef_adnum, BTEqualStrategyNumber, F_INT2EQ,
                Int16GetDatum(column));
    Relation catalog = table_open(AttrDefaultRelationId, AccessShareLock);
    SysScanDesc scan =
        systable_beginscan(catalog, AttrDefaultIndexId, true, nullptr, lengthof(keys), keys);
    HeapTuple tuple = systable_getnext(scan);
    const char* name = nullptr;
    if (HeapTupleIsValid(tuple)) {
        bool is_null;
        Datum expression =
            heap_getattr(tuple, Anum_pg_attrdef_adbin, RelationGetDescr(catalog), &is_null);
        if (!is_null)
            name = name_in(TextDatumGetCString(expression));
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return name;
}

} // namespace interlock
