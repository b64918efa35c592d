// Which sequence the name in a default refers to.
//
// The default names the sequence as text, so that the table can be created before it; the text is
// resolved when the default is evaluated. Names change: a sequence, its table or its schema is
// renamed or moved, and another sequence gets the old name. So the sequence of that name counts if
// it belongs to a column whose default has the text. Else the sequences count that belong to such
// columns, in any schema, and the one of that name if its owner has such a column.
//
// Any role that may create a sequence can take the name of one that is missing, and any role can
// create a column with the same default. Sequences of other roles may only raise the start, and not
// so far that no row could be inserted: they raise no error, and are not waited for. create_floor
// records that the default depends on the sequence, with the name that it has then. Nobody else can
// record that, so it tells whose the name is.

#include "version/floor.h"

#include "server/arguments.h"
#include "server/scope.h"
#include "server/sequence.h"
#include "table/dependency.h"
#include "table/own_table.h"
#include "version/version.h"

using namespace interlock;

namespace {

enum class Standing {
    kNamed,      // it has the name, and belongs to a column whose default has the text
    kUndisputed, // and no other role has such a column, among those checked
    kOnly,       // the only one that belongs to such a column
};

// The sequence that a text was found to mean.
struct Found {
    char name[2 * (2 * NAMEDATALEN + 2) + 2]; // hash key
    Oid sequence;
    uint64 changes; // when it was found
    Standing standing;
};

// It is looked for again once any relation, schema or sequence has changed.
HTAB* found_by_name = nullptr;
uint64 catalog_changes = 0;

void note_relation_change(Datum, Oid) { catalog_changes++; }
void note_catalog_change(Datum, CatalogCache, uint32) { catalog_changes++; }

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

// That of create_floor is far shorter, and any role can make one of gigabytes.
constexpr Size kMostDefaultBytes = 8192;

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

// The relation of a qualified name, of any kind; InvalidOid if there is none.
Oid relation_named(const char* name) {
    List* parts;
    if (!SplitIdentifierString(pstrdup(name), '.', &parts) || list_length(parts) != 2)
        refuse_argument("floor", "must be the name of a sequence and its schema");
    Oid schema = get_namespace_oid(static_cast<char*>(linitial(parts)), true);
    return OidIsValid(schema) ? get_relname_relid(static_cast<char*>(lsecond(parts)), schema)
                              : InvalidOid;
}

bool has_default(Oid relid, AttrNumber column, const char* name) {
    const char* in_default = floor_name(relid, column);
    return in_default != nullptr && strcmp(in_default, name) == 0;
}

bool belongs_to_default(Oid sequence, const char* name) {
    Oid relid;
    int32 column;
    return OidIsValid(sequence) && sequenceIsOwned(sequence, DEPENDENCY_AUTO, &relid, &column) &&
           has_default(relid, static_cast<AttrNumber>(column), name);
}

// Calls visit(relid, column) for each column whose default has the text, but for temporary tables
// of other sessions, of which any role can make thousands.
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
        CHECK_FOR_INTERRUPTS();
        auto* dependency = reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple));
        if (dependency->classid != AttrDefaultRelationId)
            continue;
        ObjectAddress column = GetAttrDefaultColumnAddress(dependency->objid);
        auto number = static_cast<AttrNumber>(column.objectSubId);
        if (isOtherTempNamespace(get_rel_namespace(column.objectId)))
            continue;
        bool has_text = false;
        if (OidIsValid(column.objectId))
            in_scratch([&] { has_text = has_default(column.objectId, number, name); });
        if (has_text)
            visit(column.objectId, number);
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
}

// Whether the name is the one that create_floor gives.
bool is_made_for(Oid sequence, Oid relid, AttrNumber column) {
    const char* column_name = get_attname(relid, column, true);
    const char* table = get_rel_name(relid);
    const char* name = get_rel_name(sequence);
    if (column_name == nullptr || table == nullptr || name == nullptr ||
        get_rel_namespace(sequence) != get_rel_namespace(relid))
        return false;
    const char* made = makeObjectName(table, column_name, "floor");
    size_t length = strlen(made);
    return strncmp(name, made, length) == 0 &&
           strspn(name + length, "0123456789") == strlen(name + length);
}

// Whether a table of another role has the text, too, so that the owner of the floor is uncertain:
// the name is made for its column, or at least not for the one that the sequence belongs to.
bool is_disputed(Oid sequence, const char* name) {
    Oid relid = InvalidOid;
    int32 column = 0;
    (void)sequenceIsOwned(sequence, DEPENDENCY_AUTO, &relid, &column);
    bool is_made = is_made_for(sequence, relid, static_cast<AttrNumber>(column));
    Oid owner = owner_of_table(sequence);
    bool disputed = false;
    each_default(name, [&](Oid other, AttrNumber other_column) {
        if (owner_of_table(other) != owner &&
            (!is_made || is_made_for(sequence, other, other_column)))
            disputed = true;
    });
    return disputed;
}

// --- Reading -------------------------------------------------------------------------------------

// The lock is that of SELECT, which does not conflict with ALTER SEQUENCE.
int64 highest_of(const List* sequences) {
    int64 highest = 0;
    ListCell* cell;
    foreach (cell, sequences) {
        int64 value = 0;
        if (read_if_possible(lfirst_oid(cell), AccessShareLock, &value))
            highest = Max(highest, value);
    }
    return highest;
}

struct Candidates {
    List* sequences = NIL;
    bool any_default = false;
};

// The sequences of columns of one role. Of several roles there are none.
struct Sole {
    Oid owner = InvalidOid;
    bool is_shared = false;
    List* sequences = NIL;

    void add(Oid owner_of_column, Oid sequence) {
        is_shared = is_shared || (OidIsValid(owner) && owner != owner_of_column);
        owner = owner_of_column;
        if (OidIsValid(sequence))
            sequences = list_append_unique_oid(sequences, sequence);
    }

    List* all() const { return is_shared ? NIL : sequences; }
};

// The sequences of the columns that have the text, else `named`, which has the name, if the owner
// has such a column. With only_owner those of this role.
Candidates find_candidates(const char* name, Oid named, Oid only_owner) {
    Candidates found;
    Oid owner_of_named = owner_of_table(named);
    bool is_own = false;
    each_default(name, [&](Oid relid, AttrNumber column) {
        found.any_default = true;
        Oid owner = owner_of_table(relid);
        if (OidIsValid(only_owner) && owner != only_owner)
            return;
        is_own = is_own || owner == owner_of_named;
        Oid sequence = floor_of_column(relid, column);
        if (OidIsValid(sequence))
            found.sequences = list_append_unique_oid(found.sequences, sequence);
    });
    if (found.sequences == NIL && is_own && OidIsValid(named))
        found.sequences = list_make1_oid(named);
    return found;
}

// Those that may raise the start as far as rows of a bigint can: of the columns whose dependency is
// recorded, or else of all that last longer than a session, if they are of one role.
List* trusted_sequences(const char* name) {
    Sole recorded;
    Sole lasting;
    each_default(name, [&](Oid relid, AttrNumber column) {
        Oid sequence = floor_of_column(relid, column);
        Oid owner = owner_of_table(relid);
        if (OidIsValid(sequence) && is_recorded(relid, column, sequence))
            recorded.add(owner, sequence);
        if (!isAnyTempNamespace(get_rel_namespace(relid)))
            lasting.add(owner, sequence);
    });
    return OidIsValid(recorded.owner) ? recorded.all() : lasting.all();
}

int64 floor_of_candidates(const char* name, const List* sequences) {
    int64 highest = highest_of(sequences);
    if (highest <= highest_floor(TokenKind::kInteger))
        return highest;
    return Max(highest_floor(TokenKind::kInteger),
               Min(highest_of(trusted_sequences(name)), highest_floor(TokenKind::kBigint)));
}

void watch_catalogs() {
    HASHCTL control = {};
    control.keysize = sizeof(Found::name);
    control.entrysize = sizeof(Found);
    control.hcxt = TopMemoryContext;
    found_by_name =
        hash_create("interlock floors", 64, &control, HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
    CacheRegisterRelcacheCallback(note_relation_change, 0);
    CacheRegisterSyscacheCallback(NAMESPACEOID, note_catalog_change, 0);
    CacheRegisterSyscacheCallback(SEQRELID, note_catalog_change, 0); // OWNED BY
}

// Null when it has to be looked for.
Found* find_known(const char* name) {
    if (found_by_name == nullptr)
        watch_catalogs();
    auto* found = static_cast<Found*>(hash_search(found_by_name, name, HASH_FIND, nullptr));
    return found != nullptr && found->changes == catalog_changes ? found : nullptr;
}

void note_known(const char* name, Oid sequence, uint64 changes, Standing standing) {
    constexpr long kMost = 8192;
    if (hash_get_num_entries(found_by_name) >= kMost)
        return;
    auto* found = static_cast<Found*>(hash_search(found_by_name, name, HASH_ENTER, nullptr));
    found->sequence = sequence;
    found->changes = changes;
    found->standing = standing;
}

// A call outside of any such default uses the name as it is.
int64 floor_of_defaults(const char* name, Oid named) {
    uint64 changes = catalog_changes;
    Candidates found = find_candidates(name, named, InvalidOid);
    if (!found.any_default && OidIsValid(named))
        return value_for_reader(named);
    if (list_length(found.sequences) == 1)
        note_known(name, linitial_oid(found.sequences), changes, Standing::kOnly);
    return floor_of_candidates(name, found.sequences);
}

int64 read_named(Oid sequence, const char* name, Standing standing) {
    int64 value = 0;
    if (read_if_possible(sequence, RowExclusiveLock, &value) &&
        value <= highest_floor(TokenKind::kInteger))
        return value;
    uint64 changes = catalog_changes;
    if (standing != Standing::kUndisputed && is_disputed(sequence, name))
        return floor_of_defaults(name, sequence);
    note_known(name, sequence, changes, Standing::kUndisputed);
    return value_for_reader(sequence);
}

int64 floor_of(const char* name) {
    if (strlen(name) >= sizeof(Found::name))
        return 0; // no sequence has so long a name
    const Found* known = find_known(name);
    if (known != nullptr && known->standing == Standing::kOnly)
        return floor_of_candidates(name, list_make1_oid(known->sequence));
    if (known != nullptr)
        return read_named(known->sequence, name, known->standing);
    uint64 changes = catalog_changes;
    Oid named = relation_named(name);
    if (!belongs_to_default(named, name))
        return floor_of_defaults(name, named);
    note_known(name, named, changes, Standing::kNamed);
    return read_named(named, name, Standing::kNamed);
}

} // namespace

namespace interlock {

int64 own_floor(const char* name, Oid owner) {
    return highest_of(find_candidates(name, relation_named(name), owner).sequences);
}

bool is_in_default(const char* name, Oid owner) {
    bool found = false;
    each_default(name,
                 [&](Oid relid, AttrNumber) { found = found || owner_of_table(relid) == owner; });
    return found;
}

bool means_a_floor(const char* name, Oid owner) {
    return find_candidates(name, InvalidOid, owner).sequences != NIL;
}

bool is_recorded(Oid relid, AttrNumber column, Oid sequence) {
    bool found = false;
    each_needed_relation(AttrDefaultRelationId, GetAttrDefaultOid(relid, column),
                         [&](Oid needed, AttrNumber) { found = found || needed == sequence; });
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
        if (!is_null && toast_raw_datum_size(expression) <= kMostDefaultBytes)
            name = name_in(TextDatumGetCString(expression));
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return name;
}

} // namespace interlock
