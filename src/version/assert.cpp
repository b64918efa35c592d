// assert_version: the row still has the version that its caller read, and only this transaction can
// change it until it ends.

#include "version/call.h"

using namespace interlock;

namespace {

StoredRow lock_row(const RowCall& call);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(assert_version);

// assert_version(rel, key, expected)
Datum assert_version(PG_FUNCTION_ARGS) {
    RowCall call = open_call(Arguments(fcinfo), RowShareLock);
    StoredRow row = lock_row(call);
    int64 stored = stored_token(row, call.versioning);
    if (!is_expected(call, stored))
        raise_version_conflict(call.rel, call.info, *table_key(call.info, call.key, row),
                               call.expected.token, stored);
    close_table(call.rel);
    PG_RETURN_VOID();
}
}

namespace {

// Locks the row and returns it with its version as it is then. A row that was deleted while we
// waited for it may have been inserted again; another version than the expected one needs no lock.
StoredRow lock_row(const RowCall& call) {
    constexpr int kAttempts = 3;
    const Bitmapset* columns =
        with_table_key(call.rel, call.info, call.key, bms_make_singleton(call.versioning->column));
    for (int i = 0; i < kAttempts; i++) {
        StoredRow row =
            read_row(call.rel, call.info, call.key, columns, {RowStrength::kNoKeyUpdate});
        bool locked = row.found;
        if (!locked)
            row = read_row(call.rel, call.info, call.key, columns);
        if (!row.found)
            raise_no_such_row(call.rel, call.info, call.key);
        if (locked || !is_expected(call, stored_token(row, call.versioning)))
            return row;
    }
    raise_suppressed(call.rel); // a policy for UPDATE hides it
}

} // namespace
