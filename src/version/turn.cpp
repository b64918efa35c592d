#include "version/turn.h"

#include "server/siphash.h"

namespace interlock::version {

// An advisory lock that pg_advisory_* cannot reach: those have 1 and 2 as the fourth field, and key
// locks (key_lock/name.cpp) less than this.
constexpr uint16 kFirstField4 = 32768;

// Not printed, as that depends on the session's settings.
static uint64 image_of(const FormData_pg_attribute& column, Datum value) {
    SipKey place = {{static_cast<uint64>(column.attnum), 0}};
    if (column.attbyval) {
        SipHash hash(place);
        hash.add(static_cast<uint64>(value));
        return hash.finish(nullptr, 0);
    }
    if (column.attlen == -1) {
        const varlena* bytes = PG_DETOAST_DATUM_PACKED(value);
        return SipHash(place).finish(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
    }
    const char* bytes = DatumGetCString(value);
    return SipHash(place).finish(bytes, column.attlen > 0 ? column.attlen : strlen(bytes));
}

// The table, and 47 bits of a hash of the key: with 32 a role finds, in seconds, a key for a row of
// its own that keeps the turn of a row that policies hide from it.
static LOCKTAG turn_of(Relation rel, const TableInfo* info, const Key& key) {
    SipHash row(SipKey{{RelationGetRelid(rel), 0}});
    for (int i = 0; i < key.by->count; i++)
        row.add(
            image_of(*TupleDescAttr(info->columns, key.by->columns[i].attnum - 1), key.values[i]));
    uint64 hash = row.finish(nullptr, 0);
    LOCKTAG turn;
    SET_LOCKTAG_ADVISORY(turn, MyDatabaseId, RelationGetRelid(rel), static_cast<uint32>(hash),
                         static_cast<uint16>(kFirstField4 | (hash >> 32)));
    return turn;
}

static void name_table_in_context(void* rel) {
    errcontext("waiting for a turn at a row of table \"%s\"",
               RelationGetRelationName(static_cast<Relation>(rel)));
}

LOCKTAG take_turn(Relation rel, const TableInfo* info, const Key& key) {
    LOCKTAG turn = turn_of(rel, info, key);
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
                   tag.locktag_field1 == MyDatabaseId && tag.locktag_field4 >= kFirstField4;
    return is_turn ? tag.locktag_field2 : InvalidOid;
}

} // namespace interlock::version
