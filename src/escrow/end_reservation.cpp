// The functions that end or extend a reservation: all of its rows, or none.

#include "escrow/cart.h"
#include "escrow/counter_order.h"
#include "escrow/held_reservation.h"
#include "escrow/reserve.h"
#include "server/arguments.h"
#include "server/error.h"
#include "sweeper/deadline.h"

namespace interlock::escrow {

static Held* held_argument(const Arguments& arguments, const char* function, Right right);
static int64* confirmed_amounts(const Arguments& arguments, const Held& held,
                                const CartItems* items);
static bool confirm_row(const HeldRow& row, int64 confirmed);
[[noreturn]] static void raise_reservation_lost(int64 token);

extern "C" {
PG_FUNCTION_INFO_V1(confirm_reservation);
PG_FUNCTION_INFO_V1(cancel_reservation);
PG_FUNCTION_INFO_V1(extend_reservation);

// confirm_reservation(token, amount, items)
Datum confirm_reservation(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    int64 token = DatumGetInt64(arguments.required(0, "token"));
    if (!arguments.is_null(1) && !arguments.is_null(2))
        refuse_argument("items", "must be null if \"amount\" is given");
    CartItems items = {};
    if (!arguments.is_null(2))
        items = items_argument(arguments, 2);
    Held* held = held_argument(arguments, "interlock.confirm_reservation()", Right::kRole);
    if (held == nullptr || !held->is_live)
        raise_reservation_lost(token);
    int64* confirmed = confirmed_amounts(arguments, *held, items.count > 0 ? &items : nullptr);
    for (int i = 0; i < held->count; i++)
        if (!confirm_row(held->rows[i], confirmed[i]))
            raise_reservation_lost(token);
    close_held(held);
    PG_RETURN_VOID();
}

// cancel_reservation(token) -> whether it was held until now
Datum cancel_reservation(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Held* held = held_argument(arguments, "interlock.cancel_reservation()", Right::kRoleOrOwner);
    if (held == nullptr)
        PG_RETURN_BOOL(false);
    bool expired = has_expired(held->rows[0].reservation);
    for (int i = 0; i < held->count; i++) {
        const HeldRow& row = held->rows[i];
        if (row.counter != nullptr) {
            int64 amount = amount_of_reservation(*row.counter->column, row.reservation);
            (void)enter_untested(*row.counter, {amount, -amount}, true);
        }
        delete_reservation(row.reservation);
    }
    close_held(held);
    PG_RETURN_BOOL(!expired);
}

// extend_reservation(token, ttl) -> expires_at
Datum extend_reservation(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    int64 ttl = ttl_argument(arguments, 1);
    Held* held = held_argument(arguments, "interlock.extend_reservation()", Right::kRole);
    if (held == nullptr)
        PG_RETURN_NULL();
    TimestampTz expires_at = GetCurrentTimestamp() + ttl;
    if (held->is_live) {
        for (int i = 0; i < held->count; i++)
            move_deadline(held->rows[i].reservation, expires_at);
        note_deadline(expires_at);
    }
    close_held(held);
    if (!held->is_live)
        PG_RETURN_NULL();
    PG_RETURN_TIMESTAMPTZ(expires_at);
}
}

static Held* held_argument(const Arguments& arguments, const char* function, Right right) {
    int64 token = DatumGetInt64(arguments.required(0, "token"));
    PreventCommandIfReadOnly(function);
    PreventCommandIfParallelMode(function);
    return hold_reservation(token, right);
}

static int64 reserved_in(const HeldRow& row) {
    return amount_of_reservation(*row.counter->column, row.reservation);
}

constexpr const char* kMostHint = "View interlock.reservations shows what is reserved.";

// Argument "amount", of a reservation of one counter.
static void confirm_amount(const Arguments& arguments, const Held& held, int64* confirmed) {
    if (held.count > 1)
        refuse_argument("amount", "must be null for a reservation of several counters",
                        "Give items.");
    confirmed[0] = amount_argument(arguments, 1, "amount", *held.rows[0].counter->column);
    if (confirmed[0] <= 0)
        refuse_argument("amount", "must be above zero", "Call interlock.cancel_reservation().");
    if (confirmed[0] > reserved_in(held.rows[0]))
        refuse_argument("amount", "must not be more than was reserved", kMostHint);
}

// The row of the item's counter; -1: none.
static int row_of_item(const Held& held, const CartItem& item) {
    for (int i = 0; i < held.count; i++) {
        const EscrowCounter& counter = *held.rows[i].counter;
        if (held.rows[i].table != item.rel ||
            get_attnum(item.rel, item.column) != counter.column->attnum)
            continue;
        EscrowCounter named =
            counter_of_item(item, counter.row.rel, counter.row.info, counter.column);
        if (compare_counters(named, counter) == 0)
            return i;
    }
    return -1;
}

static void confirm_items(const CartItems& items, const Held& held, int64* confirmed) {
    for (int i = 0; i < items.count; i++) {
        const CartItem& item = items.first[i];
        int row = row_of_item(held, item);
        if (row < 0)
            refuse_argument(psprintf("items[%d]", item.number), "must be in the reservation",
                            kMostHint);
        int64 amount = amount_of_item(item, *held.rows[row].counter->column);
        if (amount > reserved_in(held.rows[row]) - confirmed[row])
            refuse_argument(name_of_member(item, "amount"), "must not be more than was reserved",
                            kMostHint);
        confirmed[row] += amount;
    }
}

// Of each row.
static int64* confirmed_amounts(const Arguments& arguments, const Held& held,
                                const CartItems* items) {
    auto* confirmed = static_cast<int64*>(palloc0(sizeof(int64) * held.count));
    if (items != nullptr)
        confirm_items(*items, held, confirmed);
    else if (!arguments.is_null(1))
        confirm_amount(arguments, held, confirmed);
    else
        for (int i = 0; i < held.count; i++)
            confirmed[i] = reserved_in(held.rows[i]);
    return confirmed;
}

// One part sells what is confirmed and returns the rest.
static bool confirm_row(const HeldRow& row, int64 confirmed) {
    int64 amount = reserved_in(row);
    if (!enter_untested(*row.counter, {amount - confirmed, -amount}, true))
        return false;
    delete_reservation(row.reservation);
    return true;
}

static void raise_reservation_lost(int64 token) {
    const char* number = psprintf(INT64_FORMAT, token);
    ereport(ERROR, (errcode(kClaimLost), errmsg("reservation %s has expired or ended", number),
                    errdetail_internal("%s", json_object({{"token", number}})),
                    errhint("Reserve again.")));
}

} // namespace interlock::escrow
