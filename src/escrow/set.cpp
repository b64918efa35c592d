// set_escrow and escrow_value.

#include "escrow/change.h"
#include "escrow/notify.h"
#include "escrow/reservation.h"
#include "escrow/stored_value.h"
#include "execution/read.h"
#include "server/arguments.h"
#include "server/scope.h"
#include "server/subtransaction.h"
#include "table/row.h"

namespace interlock::escrow {

namespace {

// The counter that the arguments rel, key and column_name name.
struct Named {
    Key key;
    EscrowCounter counter;
};

} // namespace

static Named* read_named(const Arguments& arguments, LOCKMODE mode, AclMode right);

// Enters the gate and locks the row, whose column has *value. False: there is no such row.
static bool lock_alone(const EscrowCounter& counter, int64* value);

extern "C" {
PG_FUNCTION_INFO_V1(set_escrow);
PG_FUNCTION_INFO_V1(escrow_value);

// set_escrow(rel, key, column_name, value)
Datum set_escrow(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    PreventCommandIfReadOnly("interlock.set_escrow()");
    PreventCommandIfParallelMode("interlock.set_escrow()");
    Named* named = read_named(arguments, RowExclusiveLock, ACL_UPDATE);
    EscrowCounter* counter = &named->counter;
    const KeyedRow& row = counter->row;
    usable_escrow(row.rel, row.info, counter->column->attnum);
    require_change_rights(row.rel, *counter->column);
    int64 wanted = amount_argument(arguments, 3, "value", *counter->column);
    if (wanted < counter->limits.least || wanted > counter->limits.most)
        refuse_argument("value", "is outside of the limits of the counter");
    int64 value;
    if (!lock_alone(*counter, &value))
        raise_no_such_row(row.rel, row.info, *row.key);
    find_id(counter);
    if (counter->id != 0) {
        AmountSum former = {};
        end_parts(*counter, &former);
        AmountSum total = sum_of_reservations(*counter->column, counter->id);
        total.add(wanted);
        if (!total.is_at_most(counter->limits.most))
            refuse_argument(
                "value", "leaves no room for what is reserved",
                "View interlock.reservations shows what is reserved in addition to the value.");
    }
    if (!write_value(*counter, wanted))
        raise_suppressed(row.rel);
    notify_of_return(row, *counter->column); // there may be less now: a listener asks again
    close_table(row.rel);
    PG_RETURN_VOID();
}

// escrow_value(rel, key, column_name): the row and its parts under the caller's snapshot
Datum escrow_value(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Named* named = read_named(arguments, AccessShareLock, ACL_SELECT);
    EscrowCounter* counter = &named->counter;
    int64 value;
    if (!read_stored_value(*counter, &value)) {
        close_table(counter->row.rel);
        PG_RETURN_NULL();
    }
    AmountSum sum = {value, 0};
    counter->id = counter_in_snapshot(counter->name);
    if (counter->id != 0)
        add_parts(*counter->column, counter->id, &sum);
    Datum result = numeric_of(*counter->column, sum.amount());
    close_table(counter->row.rel);
    return result;
}
}

static Named* read_named(const Arguments& arguments, LOCKMODE mode, AclMode right) {
    Relation rel = open_table(arguments.relation(0), mode, right);
    const TableInfo* info = table_info(rel);
    AttrNumber attnum = column_number(rel, arguments.name(2, "column_name"));
    const EscrowColumn* column = escrow_of(info, attnum);
    if (column == nullptr || key_of_counters(info, *column) == nullptr)
        column = usable_escrow(rel, info, attnum);
    auto* named = static_cast<Named*>(palloc(sizeof(Named)));
    named->key = key_argument(arguments, 1, rel, info);
    require_counter_key(rel, info, *column, named->key);
    named->counter = counter_of({rel, info, &named->key}, column);
    return named;
}

// Under row security a row that is seen need not be one that may be changed.
static bool may_lock(const EscrowCounter& counter) {
    bool found = false;
    ErrorData* error = attempt_if([&] {
        int64 value;
        found = lock_value(counter, true, &value);
        return false;
    });
    if (error != nullptr)
        ReThrowError(error);
    return found;
}

static bool lock_alone(const EscrowCounter& counter, int64* value) {
    if (has_policies(counter.row.rel) && !may_lock(counter))
        return false;
    enter_gate(counter, ExclusiveLock);
    return lock_value(counter, true, value);
}

} // namespace interlock::escrow
