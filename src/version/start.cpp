#include "version/start.h"

#include "server/sequence.h"
#include "server/subtransaction.h"
#include "table/catalog_trigger.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "table/trigger.h"
#include "version/version.h"

namespace interlock::version {

// Every role may read a start; only the extension moves it, as the table's owner.
static void raise_start(Oid sequence, int64 version) {
    if (version <= value_of_sequence(sequence))
        return;
    // setval alone could lower a value that another session raised between the read and the write.
    LockRelationOid(sequence, ShareUpdateExclusiveLock);
    if (version > value_of_sequence(sequence))
        as_owner_of(sequence, [&] {
            DirectFunctionCall2(setval_oid, ObjectIdGetDatum(sequence), Int64GetDatum(version));
        });
    UnlockRelationOid(sequence, ShareUpdateExclusiveLock);
}

// To find it takes a scan of the catalogs. A table that gets or loses its default, which reads the
// sequence, is known anew; without the default the sequence can be dropped unnoticed.
static Oid known_start(const TableInfo* info) {
    const Versioning* versioning = versioning_of(info);
    if (!OidIsValid(versioning->start) ||
        !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(versioning->start)))
        versioning->start = find_start(versioning);
    return versioning->start;
}

// For ALTER TABLE: without those that inherit, which have versions and a start of their own.
static char* with_partitions(Oid relid) {
    const char* only = get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE ? "" : "ONLY ";
    return psprintf("%s%s", only, qualified_name(relid));
}

// The default of a table that was moved still has the name that its start had there.
static char* choose_name(Oid relid, const char* column) {
    const char* label = "start";
    for (int pass = 1;; pass++) {
        char* name =
            ChooseRelationName(get_rel_name(relid), column, label, get_rel_namespace(relid), false);
        char* sequence =
            quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), name);
        if (!means_a_start(sequence))
            return sequence;
        label = psprintf("start%d", pass);
    }
}

// To a sequence that belongs to the column.
static char* create_sequence(Oid relid, const char* column) {
    Oid owner = owner_of_table(relid);
    char* sequence = choose_name(relid, column);
    run_command(psprintf("CREATE SEQUENCE %s", sequence));
    if (owner != GetUserId()) // an administrator; the server wants one owner for both
        run_command(psprintf("ALTER SEQUENCE %s OWNER TO %s", sequence,
                             quote_identifier(GetUserNameFromId(owner, false))));
    run_command(psprintf("ALTER SEQUENCE %s OWNED BY %s.%s", sequence, qualified_name(relid),
                         quote_identifier(column)));
    run_command(
        psprintf("GRANT SELECT ON SEQUENCE %s TO PUBLIC", sequence)); // the default reads it
    return sequence;
}

// Whether a partition has a default that does not name it.
static bool has_other_defaults(Oid relid, AttrNumber column, const char* named) {
    const char* name = get_attname(relid, column, false);
    ListCell* cell;
    foreach (cell, find_all_inheritors(relid, NoLock, nullptr)) {
        Oid table = lfirst_oid(cell);
        const char* in_default = start_name(table, get_attnum(table, name));
        if (get_rel_relispartition(table) &&
            (in_default == nullptr || strcmp(in_default, named) != 0))
            return true;
    }
    return false;
}

// The highest of the starts that the table and its partitions have had.
static int64 former_start(Oid relid, const char* column) {
    int64 highest = 0;
    List* names = NIL; // each once: to find one takes a look at the defaults of all tables
    ListCell* cell;
    foreach (cell, find_all_inheritors(relid, NoLock, nullptr)) {
        AttrNumber number = get_attnum(lfirst_oid(cell), column);
        Oid own = owned_sequence(lfirst_oid(cell), number);
        if (OidIsValid(own))
            highest = Max(highest, value_of_sequence(own));
        const char* named = start_name(lfirst_oid(cell), number);
        if (named != nullptr)
            names = list_append_unique(names, makeString(pstrdup(named)));
    }
    foreach (cell, names)
        highest = Max(highest, start_of_name(strVal(lfirst(cell))));
    return highest;
}

// The default names it as text, so the server does not know that it needs it.
static void depend_on(Oid relid, AttrNumber column, Oid sequence) {
    ObjectAddress dependent = {AttrDefaultRelationId, GetAttrDefaultOid(relid, column), 0};
    ObjectAddress needed = {RelationRelationId, sequence, 0};
    recordDependencyOn(&dependent, &needed, DEPENDENCY_NORMAL);
}

// Otherwise any role that may insert and delete could raise the start to the end of the range, so
// that no new row would have a first version; or, in a bigint, beyond the exact range of a client's
// numbers.
int64 highest_start(TokenKind kind) {
    constexpr int64 kHighestBigint = INT64CONST(1) << 52;
    return kind == TokenKind::kInteger ? PG_INT32_MAX / 2 : kHighestBigint;
}

// The table that versions are enabled on: this one, or one that it is a partition of. Its default
// counts: rows that are inserted there get it, whatever the partition had before.
static Oid versioned_root(Oid relid) {
    Oid root = relid;
    if (!get_rel_relispartition(relid))
        return root;
    each_trigger_of("version_trigger", relid,
                    [&](Oid, const Trigger* trigger) { root = root_of_trigger(relid, trigger); });
    return root;
}

static Oid start_of_root(Oid root, const char* column) {
    return owned_sequence(root, get_attnum(root, column));
}

Oid start_of_column(Oid relid, AttrNumber column) {
    char* name = get_attname(relid, column, true);
    return name != nullptr ? start_of_root(versioned_root(relid), name) : InvalidOid;
}

Oid find_start(const Versioning* versioning) {
    return start_of_root(versioning->root, NameStr(versioning->name));
}

void note_departure(Relation rel, const TableInfo* info, HeapTuple row) {
    const Versioning* versioning = versioning_of(info);
    if (!is_counter(versioning->kind))
        return;
    bool is_null;
    Datum value = heap_getattr(row, versioning->column, RelationGetDescr(rel), &is_null);
    int64 version = token_of_datum(versioning->kind, value, is_null);
    if (version < 1)
        return;
    Oid start = known_start(info);
    if (OidIsValid(start))
        raise_start(start, Min(version, highest_start(versioning->kind)));
}

int64 present_start(const TableInfo* info) {
    Oid start = known_start(info);
    return OidIsValid(start) ? value_of_sequence(start) : 0;
}

bool lacks_start(Oid relid, AttrNumber column, const char* named) {
    Oid sequence = owned_sequence(relid, column);
    return !OidIsValid(sequence) || strcmp(qualified_name(sequence), named) != 0 ||
           !is_recorded(relid, column, sequence) || has_other_defaults(relid, column, named);
}

void create_start(Oid relid, const char* column) {
    AttrNumber number = get_attnum(relid, column);
    TokenKind kind = TokenKind::kInteger;
    (void)token_kind_of(get_atttype(relid, number), &kind);
    int64 former = Min(former_start(relid, column), highest_start(kind));
    Oid present = owned_sequence(relid, number);
    const char* sequence =
        OidIsValid(present) ? qualified_name(present) : create_sequence(relid, column);
    const char* literal = quote_literal_cstr(sequence);
    as_owner_of(relid, [&] { raise_start(owned_sequence(relid, number), former); });
    run_command(psprintf("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT %s(%s)",
                         with_partitions(relid), quote_identifier(column),
                         own_function("first_version"), literal));
    depend_on(relid, number, owned_sequence(relid, number));
}

void drop_start(Oid relid, const char* column, Oid sequence) {
    const char* name = start_name(relid, get_attnum(relid, column));
    run_command(psprintf("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT 1", with_partitions(relid),
                         quote_identifier(column)));
    CommandCounterIncrement();
    // A partition that was detached meanwhile keeps its default and so the sequence. Any role can
    // write the same default for a table of its own.
    if (name != nullptr && is_in_default(name))
        return;
    char* drop = psprintf("DROP SEQUENCE %s", qualified_name(sequence));
    ErrorData* error = attempt([&] { run_command(drop); });
    if (error != nullptr && error->sqlerrcode != ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST)
        ReThrowError(error);
}

} // namespace interlock::version
