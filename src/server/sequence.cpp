#include "server/sequence.h"

namespace interlock::inline server {

[[noreturn]] static void raise_no_sequence(Oid relid) {
    const char* name = get_rel_name(relid);
    if (name == nullptr || get_rel_relkind(relid) == RELKIND_SEQUENCE)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("sequence with OID %u does not exist", relid)));
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a sequence", name)));
}

// Raises 42P01 or 42809 before it locks anything; the lock stays, as that of nextval.
static Relation open_sequence(Oid sequence) {
    Relation rel = nullptr;
    if (get_rel_relkind(sequence) == RELKIND_SEQUENCE)
        rel = try_relation_open(sequence, RowExclusiveLock);
    if (rel == nullptr)
        raise_no_sequence(sequence);
    return rel;
}

static bool is_readable(Oid sequence) {
    bool is_missing = false;
    return pg_class_aclcheck_ext(sequence, GetUserId(), ACL_SELECT | ACL_USAGE, &is_missing) ==
               ACLCHECK_OK ||
           is_missing;
}

static void require_readable(Oid sequence) {
    if (is_readable(sequence))
        return;
    const char* name = get_rel_name(sequence);
    if (name != nullptr)
        aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SEQUENCE, name);
}

// Of the sequence's only row; zero when nothing was deleted yet.
static int64 last_value(Relation rel) {
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

static int64 read(Relation rel) {
    if (RELATION_IS_OTHER_TEMP(rel))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("cannot access temporary sequences of other sessions")));
    // A standby has nothing of what is unlogged.
    return RecoveryInProgress() && !RelationIsPermanent(rel) ? 0 : last_value(rel);
}

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

int64 value_of_sequence(Oid sequence) {
    Relation rel = open_sequence(sequence);
    int64 value = read(rel);
    relation_close(rel, NoLock);
    return value;
}

int64 value_for_reader(Oid sequence) {
    uint64 changes = SharedInvalidMessageCounter;
    if (get_rel_relkind(sequence) != RELKIND_SEQUENCE)
        raise_no_sequence(sequence);
    require_readable(sequence);
    Relation rel = open_sequence(sequence);
    if (SharedInvalidMessageCounter != changes)
        require_readable(sequence);
    int64 value = read(rel);
    relation_close(rel, NoLock);
    return value;
}

bool read_if_possible(Oid sequence, LOCKMODE mode, int64* value) {
    uint64 changes = SharedInvalidMessageCounter;
    if (!is_readable(sequence) || !ConditionalLockRelationOid(sequence, mode))
        return false;
    Relation rel = try_relation_open(sequence, NoLock);
    if (rel == nullptr)
        return false;
    bool reads = rel->rd_rel->relkind == RELKIND_SEQUENCE && !RELATION_IS_OTHER_TEMP(rel) &&
                 (SharedInvalidMessageCounter == changes || is_readable(sequence));
    if (reads)
        *value = read(rel);
    relation_close(rel, NoLock);
    return reads;
}

} // namespace interlock::inline server
