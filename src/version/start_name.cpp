// Which sequence the name in a default refers to.
//
// The default names the sequence as text, since tools for schemas create the table before it. The
// text is not looked up as a name: the sequence counts that belongs to a column whose default has
// the text, wherever it was moved since. If several sequences do, the highest value counts. If none
// does, rows start at 1.
//
// Any role can make such a column. A sequence is therefore trusted only if create_start has
// recorded it, the text is its current name, and nobody else owns another recorded sequence for the
// text. The other sequences raise the start to 2^30 at most, and reading them raises no error.

#include "version/start.h"

#include "server/arguments.h"
#include "server/scope.h"
#include "server/sequence.h"
#include "table/dependency.h"
#include "table/own_table.h"
#include "version/version.h"

namespace interlock::version {

namespace {

struct Candidate {
    Oid sequence;
    bool is_trusted;
};

// The only candidate for a text.
struct Found {
    char name[2 * (2 * NAMEDATALEN + 2) + 2]; // hash key
    Candidate sole;
};

} // namespace

// It is looked for again once any relation, schema or sequence has changed.
static HTAB* found_by_name = nullptr;
static uint64 catalog_changes = 0;
static uint64 found_after = 0; // the changes that were seen before the first was found

static void note_relation_change(Datum, Oid) { catalog_changes++; }
static void note_catalog_change(Datum, CatalogCache, uint32) { catalog_changes++; }

// --- Defaults ------------------------------------------------------------------------------------

static Oid function_of_defaults() { return own_function_oid("first_version", {TEXTOID}); }

// That of create_start is far shorter, and any role can make one of gigabytes.
constexpr Size kMostDefaultBytes = 8192;

// The argument of a call of first_version, below the cast to the column's type; else null.
static const char* name_in(const char* expression) {
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

static void require_name(const char* name) {
    List* parts;
    if (!SplitIdentifierString(pstrdup(name), '.', &parts) || list_length(parts) != 2)
        refuse_argument("sequence", "must be the name of a sequence and its schema");
}

static bool has_default(Oid relid, AttrNumber column, const char* name) {
    const char* in_default = start_name(relid, column);
    return in_default != nullptr && strcmp(in_default, name) == 0;
}

// Calls visit(relid, column) for each column whose default has the text, but for temporary tables
// of other sessions, of which any role can make thousands.
template <typename Visit>
static void each_default(const char* name, Visit&& visit) {
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

// A sequence that may be another role's is locked as SELECT locks it, which does not conflict with
// ALTER SEQUENCE.
static int64 value_of(const Candidate& candidate) {
    if (candidate.is_trusted)
        return Min(value_for_reader(candidate.sequence), highest_start(TokenKind::kBigint));
    int64 value = 0;
    (void)read_if_possible(candidate.sequence, AccessShareLock, &value);
    return Min(value, highest_start(TokenKind::kInteger));
}

// False when it is dropped meanwhile.
static bool is_current_name(Oid sequence, const char* name) {
    const char* schema = get_namespace_name(get_rel_namespace(sequence));
    const char* own = get_rel_name(sequence);
    return schema != nullptr && own != nullptr &&
           strcmp(quote_qualified_identifier(schema, own), name) == 0;
}

namespace {

// Each once, however many partitions have the default.
struct Candidates {
    List* sequences = NIL;
    List* recorded = NIL;
    bool have_one_owner = true; // the recorded ones

    Candidate at(int i, const char* name) const {
        Oid sequence = list_nth_oid(sequences, i);
        bool is_trusted = list_member_oid(recorded, sequence) && have_one_owner &&
                          is_current_name(sequence, name);
        return {sequence, is_trusted};
    }
};

} // namespace

static Candidates find_candidates(const char* name) {
    Candidates found;
    each_default(name, [&](Oid relid, AttrNumber column) {
        Oid sequence = start_of_column(relid, column);
        if (!OidIsValid(sequence))
            return;
        found.sequences = list_append_unique_oid(found.sequences, sequence);
        if (is_recorded(relid, column, sequence))
            found.recorded = list_append_unique_oid(found.recorded, sequence);
    });
    ListCell* cell;
    foreach (cell, found.recorded)
        if (owner_of_table(lfirst_oid(cell)) != owner_of_table(linitial_oid(found.recorded)))
            found.have_one_owner = false;
    return found;
}

static void watch_catalogs() {
    static bool watches = false;
    if (watches)
        return;
    watches = true;
    CacheRegisterRelcacheCallback(note_relation_change, 0);
    CacheRegisterSyscacheCallback(NAMESPACEOID, note_catalog_change, 0);
    CacheRegisterSyscacheCallback(SEQRELID, note_catalog_change, 0); // OWNED BY
}

static bool is_current() { return found_by_name != nullptr && found_after == catalog_changes; }

// Null when it has to be looked for.
static Found* find_known(const char* name) {
    if (!is_current())
        return nullptr;
    return static_cast<Found*>(hash_search(found_by_name, name, HASH_FIND, nullptr));
}

static void begin_anew() {
    HTAB* old = found_by_name;
    found_by_name = nullptr;
    if (old != nullptr)
        hash_destroy(old);
    HASHCTL control = {};
    control.keysize = sizeof(Found::name);
    control.entrysize = sizeof(Found);
    control.hcxt = TopMemoryContext;
    found_by_name =
        hash_create("interlock starts", 64, &control, HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
    found_after = catalog_changes;
}

static void note_known(const char* name, const Candidate& sole) {
    constexpr long kMost = 8192;
    if (!is_current())
        begin_anew();
    if (hash_get_num_entries(found_by_name) >= kMost)
        return;
    auto* found = static_cast<Found*>(hash_search(found_by_name, name, HASH_ENTER, nullptr));
    found->sole = sole;
}

// Only for a sequence that nobody else can have added. Rows that are deleted do not raise it.
static void refuse_distributed_start(const Candidate& candidate) {
    Oid table;
    int32 column;
    if (!candidate.is_trusted ||
        !sequenceIsOwned(candidate.sequence, DEPENDENCY_AUTO, &table, &column) ||
        distribution_of(table) == Distribution::kNone)
        return;
    ereport(
        ERROR,
        (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
         errmsg("first_version cannot be used with table \"%s\", which Citus distributes",
                get_rel_name(table)),
         errhint("The table's owner calls SELECT interlock.enable_versioning(%s, %s) again, "
                 "which makes 1 the default.",
                 quote_literal_cstr(qualified_name(table)),
                 quote_literal_cstr(get_attname(table, static_cast<AttrNumber>(column), false)))));
}

static int64 search_start(const char* name) {
    watch_catalogs();
    uint64 changes = catalog_changes;
    require_name(name);
    Candidates found = find_candidates(name);
    if (list_length(found.sequences) == 1) {
        refuse_distributed_start(found.at(0, name));
        Candidate sole = found.at(0, name);
        if (changes == catalog_changes) // else what was found may be old already
            note_known(name, sole);
    }
    int64 highest = 0;
    for (int i = 0; i < list_length(found.sequences); i++)
        highest = Max(highest, value_of(found.at(i, name)));
    return highest;
}

int64 start_of_name(const char* name) {
    if (strlen(name) >= sizeof(Found::name))
        return 0; // no sequence has so long a name
    const Found* known = find_known(name);
    return known != nullptr ? value_of(known->sole) : search_start(name);
}

bool is_in_default(const char* name) {
    bool found = false;
    each_default(name, [&](Oid, AttrNumber) { found = true; });
    return found;
}

bool means_a_start(const char* name) { return find_candidates(name).sequences != NIL; }

bool is_recorded(Oid relid, AttrNumber column, Oid sequence) {
    bool found = false;
    each_needed_relation(AttrDefaultRelationId, GetAttrDefaultOid(relid, column),
                         [&](Oid needed, AttrNumber) { found = found || needed == sequence; });
    return found;
}

const char* start_name(Oid relid, AttrNumber column) {
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

extern "C" {
PG_FUNCTION_INFO_V1(first_version);

Datum first_version(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    int64 start = start_of_name(arguments.string(0, "sequence"));
    PG_RETURN_INT64(Min(start, highest_start(TokenKind::kBigint)) + 1);
}
}

} // namespace interlock::version
