#include "version/turn.h"

namespace interlock {

namespace {

// An advisory lock that pg_advisory_* cannot reach: those have 1 and 2 as the fourth field, and key
// locks (key_lock/name.cpp) from 18752 on.
constexpr uint16 kField4 = 18751;

uint32 hash_of(const TableInfo* info, const Key& key) {
    uint32 hash = 0;
    for (int i = 0; i < key.by->count; i++) {
        Form_pg_attribute column = TupleDescAttr(info->columns, key.by->columns[i].attnum - 1);
        hash =
            hash_combine(hash, datum_image_hash(key.values[i], column->attbyval, column->attlen));
    }
    return hash;
}

void name_table_in_context(void* rel) {
    errcontext("waiting for a turn at a row of table \"%s\"",
               RelationGetRelationName(static_cast<Relation>(rel)));
}

} // namespace

LOCKTAG take_turn(Relation rel, const TableInfo* info, const Key& key) {
    LOCKTAG turn;
    SET_LOCKTAG_ADVISORY(turn, MyDatabaseId, RelationGetRelid(rel), hash_of(info, key), kField4);
    ErrorContextCallback context = {error_context_stack, name_table_in_context, rel};
    error_context_stack = &context;
    LockAcquire(&turn, ExclusiveLock, false, false);
    error_context_stack = context.previous;
    return turn;
}

void keep_or_end_turn(const LOCKTAG& turn, bool has_row) {
    static uint64 kept_in = 0;
    uint64 transaction = U64FromFullTransactionId(GetTopFullTransactionIdIfAny());
    if (has_row && transaction != kept_in)
        kept_in = transaction;
    else
        LockRelease(&turn, ExclusiveLock, false);
}

Oid table_of_turn(const LOCKTAG& tag) {
    bool is_turn = tag.locktag_type == LOCKTAG_ADVISORY &&
                   tag.locktag_lockmethodid == USER_LOCKMETHOD &&
                   tag.locktag_field1 == MyDatabaseId && tag.locktag_field4 == kField4;
    return is_turn ? tag.locktag_field2 : InvalidOid;
}

} // namespace interlock
