// assert_version: the row still has the version that its caller read, and only this transaction can
// change it until it ends.

#include "execution/probe.h"
#include "execution/returned.h"
#include "server/scope.h"
#include "version/asserted.h"
#include "version/call.h"
#include "version/errors.h"

namespace interlock::version {

static StoredRow lock_row(const RowCall& call);
static void note_place(const RowCall& call, const StoredRow& row);

extern "C" {
PG_FUNCTION_INFO_V1(assert_version);

// assert_version(rel, key, expected)
Datum assert_version(PG_FUNCTION_ARGS) {
    RowCall call = open_call(Arguments(fcinfo), RowShareLock);
    StoredRow row = lock_row(call);
    int64 stored = stored_token(row, call.versioning);
    count_call(call.info, !is_expected(call, stored));
    if (!is_expected(call, stored))
        raise_version_conflict(call.rel, call.info, *table_key(call.info, call.key, row),
                               call.expected.token, stored);
    note_place(call, row);
    close_table(call.rel);
    PG_RETURN_VOID();
}
}

// Locks the row and returns it with its version as it is then. A row that was deleted while we
// waited for it may have been inserted again; another version than the expected one needs no lock.
static StoredRow lock_row(const RowCall& call) {
    constexpr int kAttempts = 3;
    const Bitmapset* columns =
        with_table_key(call.rel, call.info, call.key, bms_make_singleton(call.versioning->column));
    for (int i = 0; i < kAttempts; i++) {
        StoredRow row =
            read_row(call.rel, call.info, call.key, columns,
                     {RowStrength::kNoKeyUpdate, RowWait::kWait, CountedKind::kVersioning});
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

// --- Where it is ---------------------------------------------------------------------------------

static void note_place_of(const RowCall& call, Relation index) {
    TupleTableSlot* slot = table_slot_create(call.rel, nullptr);
    PushActiveSnapshot(GetTransactionSnapshot());
    if (probe_key({call.rel, call.info, &call.key}, index, slot))
        note_asserted(call.info->relid, slot->tts_tid);
    PopActiveSnapshot();
    ExecDropSingleTupleTableSlot(slot);
}

// Of a partitioned table. The system columns need SELECT on the table.
static void note_place_by_statement(const RowCall& call) {
    with_spi([&] {
        PlanShape shape = {call.info->relid, PlanKind("asserted_place")};
        shape.key = call.key.by->index;
        TablePlan plan = plan_of(shape, [&](Statement* statement) {
            statement->add("SELECT t.tableoid, t.ctid FROM %s t WHERE ",
                           target_of(call.rel, call.info));
            add_key_condition(statement, call.info, call.key);
        });
        Parameters parameters(call.key.by->count);
        add_key(&parameters, call.key);
        if (run_plan(plan, parameters, 1) == 0)
            return;
        bool is_null;
        auto column = [&](int n) {
            return SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, n, &is_null);
        };
        note_asserted(DatumGetObjectId(column(1)),
                      *reinterpret_cast<ItemPointer>(DatumGetPointer(column(2))));
    });
}

// The row is locked and has been shown to the caller. Without its place, statements that write it
// later are judged as if it had not been asserted.
static void note_place(const RowCall& call, const StoredRow& row) {
    if (ItemPointerIsValid(&row.place)) {
        note_asserted(call.info->relid, row.place);
        return;
    }
    CommandCounterIncrement();
    if (call.rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE) {
        if (pg_class_aclcheck(call.info->relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK)
            note_place_by_statement(call);
        return;
    }
    Relation index = open_key_index(*call.key.by, AccessShareLock);
    if (index == nullptr)
        return;
    note_place_of(call, index);
    index_close(index, NoLock);
}

} // namespace interlock::version
