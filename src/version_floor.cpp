#include "version_floor.h"

#include "arguments.h"
#include "own_table.h"
#include "plan.h"
#include "scope.h"
#include "subtransaction.h"
#include "version.h"

namespace interlock {

namespace {

Oid owned_sequence(Oid relid, AttrNumber column) {
    ListCell* cell;
    foreach (cell, getOwnedSequences(relid)) {
        Oid owner;
        int32 owner_column;
        if (sequenceIsOwned(lfirst_oid(cell), DEPENDENCY_AUTO, &owner, &owner_column) &&
            owner == relid && owner_column == column)
            return lfirst_oid(cell);
    }
    return InvalidOid;
}

// Whoever may insert and delete could otherwise raise the floor to the end of the range, and no row
// could start any more; or, in a bigint, to where a client's numbers are no longer exact.
int64 highest_floor(TokenKind kind) {
    constexpr int64 kHighestBigint = INT64CONST(1) << 52;
    return kind == TokenKind::kInteger ? PG_INT32_MAX / 2 : kHighestBigint;
}

[[noreturn]] void raise_no_sequence(Oid relid) {
    const char* name = get_rel_name(relid);
    if (name == nullptr || get_rel_relkind(relid) == RELKIND_SEQUENCE)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("sequence with OID %u does not exist", relid)));
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a sequence", name)));
}

// Raises 42P01 or 42809 before it locks anything; the lock stays, as that of nextval.
Relation open_sequence(Oid sequence) {
    Relation rel = nullptr;
    if (get_rel_relkind(sequence) == RELKIND_SEQUENCE)
        rel = try_relation_open(sequence, RowExclusiveLock);
    if (rel == nullptr)
        raise_no_sequence(sequence);
    return rel;
}

void require_readable(Oid sequence) {
    bool is_missing = false;
    if (pg_class_aclcheck_ext(sequence, GetUserId(), ACL_SELECT | ACL_USAGE, &is_missing) ==
            ACLCHECK_OK ||
        is_missing)
        return;
    const char* name = get_rel_name(sequence);
    if (name != nullptr)
        aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SEQUENCE, name);
}

// Of the sequence's only row; zero when nothing was deleted yet.
int64 last_value(Relation rel) {
    Buffer buffer = ReadBuffer(rel, 0);
    LockBuffer(buffer, BUFFER_LOCK_SHARE);
    Page page = BufferGetPage(buffer);
    ItemId item = PageGetItemId(page, FirstOffsetNumber);
    auto* row = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
    auto* data =
        reinterpret_cast<Form_pg_sequence_data>(reinterpret_cast<char*>(row) + row->t_hoff);
    int64 value = data->is_called ? data->last_value : 0;
    UnlockReleaseBuffer(buffer);
    return value;
}

int64 read_floor(Relation rel) {
    if (RELATION_IS_OTHER_TEMP(rel))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("cannot access temporary sequences of other sessions")));
    // A standby has nothing of what is unlogged.
    return RecoveryInProgress() && !RelationIsPermanent(rel) ? 0 : last_value(rel);
}

int64 read_floor(Oid sequence) {
    Relation rel = open_sequence(sequence);
    int64 floor = read_floor(rel);
    relation_close(rel, NoLock);
    return floor;
}

// Everybody may read a floor; only the extension moves it, as the table's owner.
void raise_floor(Oid sequence, int64 version) {
    if (version <= read_floor(sequence))
        return;
    // setval alone could lower what another session raised between the read and the write.
    LockRelationOid(sequence, ShareUpdateExclusiveLock);
    if (version > read_floor(sequence))
        as_owner_of(sequence, [&] {
            DirectFunctionCall2(setval_oid, ObjectIdGetDatum(sequence), Int64GetDatum(version));
        });
    UnlockRelationOid(sequence, ShareUpdateExclusiveLock);
}

// To find it takes a scan of the catalogs. A table that gets or loses its default, which reads the
// sequence, is known anew; without the default the sequence can be dropped unnoticed.
Oid known_floor(Relation rel, const RelationFacts* facts) {
    if (!OidIsValid(facts->floor) || !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(facts->floor)))
        facts->floor = find_floor(rel, facts->versioning);
    return facts->floor;
}

char* sequence_name(Oid sequence) {
    return quote_qualified_identifier(get_namespace_name(get_rel_namespace(sequence)),
                                      get_rel_name(sequence));
}

char* table_name(Oid relid) { return sequence_name(relid); }

} // namespace

Oid find_floor(Relation rel, const Versioning* versioning) {
    Oid sequence = owned_sequence(RelationGetRelid(rel), versioning->column);
    // A partition's owner can put a trigger of ours on it: only where the parent's owner has
    // enabled versioning is a sequence of the parent's a floor.
    if (OidIsValid(sequence) || !rel->rd_rel->relispartition || !versioning->is_clone)
        return sequence;
    ListCell* cell;
    foreach (cell, get_partition_ancestors(RelationGetRelid(rel))) {
        AttrNumber column = get_attnum(lfirst_oid(cell), NameStr(versioning->name));
        sequence = owned_sequence(lfirst_oid(cell), column);
        if (OidIsValid(sequence))
            return sequence;
    }
    return InvalidOid;
}

void note_departure(Relation rel, const RelationFacts* facts, HeapTuple row) {
    const Versioning* versioning = facts->versioning;
    if (!is_counter(versioning->kind))
        return;
    bool is_null;
    Datum value = heap_getattr(row, versioning->column, RelationGetDescr(rel), &is_null);
    int64 version = token_of_datum(versioning->kind, value, is_null);
    if (version < 1)
        return;
    Oid floor = known_floor(rel, facts);
    if (OidIsValid(floor))
        raise_floor(floor, Min(version, highest_floor(versioning->kind)));
}

void create_floor(Oid relid, const char* column) {
    char* name =
        ChooseRelationName(get_rel_name(relid), column, "floor", get_rel_namespace(relid), false);
    const char* sequence =
        quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), name);
    const char* table = table_name(relid);
    const char* quoted = quote_identifier(column);
    run_command(psprintf("CREATE SEQUENCE %s", sequence));
    Oid owner = owner_of_table(relid);
    if (owner != GetUserId()) // an administrator; the server wants one owner for both
        run_command(psprintf("ALTER SEQUENCE %s OWNER TO %s", sequence,
                             quote_identifier(GetUserNameFromId(owner, false))));
    run_command(psprintf("ALTER SEQUENCE %s OWNED BY %s.%s", sequence, table, quoted));
    run_command(
        psprintf("GRANT SELECT ON SEQUENCE %s TO PUBLIC", sequence)); // the default reads it
    run_command(psprintf("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT interlock.first_version(%s)",
                         table, quoted, quote_literal_cstr(sequence)));
}

void drop_floor(Oid relid, const char* column, Oid sequence) {
    run_command(psprintf("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT 1", table_name(relid),
                         quote_identifier(column)));
    char* drop = psprintf("DROP SEQUENCE %s", sequence_name(sequence));
    ErrorData* error = attempt([&] { run_command(drop); });
    // A partition that was detached meanwhile keeps its default and so the sequence.
    if (error != nullptr && error->sqlerrcode != ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST)
        ReThrowError(error);
}

} // namespace interlock

using namespace interlock;

extern "C" {
PG_FUNCTION_INFO_V1(first_version);

Datum first_version(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Oid sequence = DatumGetObjectId(arguments.required(0, "floor"));
    uint64 changes = SharedInvalidMessageCounter;
    require_readable(sequence);
    Relation rel = open_sequence(sequence);
    if (SharedInvalidMessageCounter != changes)
        require_readable(sequence);
    int64 floor = read_floor(rel);
    relation_close(rel, NoLock);
    if (floor == PG_INT64_MAX)
        ereport(ERROR,
                (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
    PG_RETURN_INT64(floor + 1);
}
}
