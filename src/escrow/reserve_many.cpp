// reserve_many: the counters of a cart, all or none.
//
// The counters are taken in one order (compare_counters), so that two carts never wait for each
// other. They are taken in a subtransaction. If one of them is short, its rollback releases the
// others with their gates and row locks.

#include "escrow/adjust.h"
#include "escrow/cart.h"
#include "escrow/counter_order.h"
#include "escrow/reservation.h"
#include "escrow/reserve.h"
#include "server/arguments.h"
#include "server/result_row.h"
#include "server/subtransaction.h"
#include "sweeper/deadline.h"
#include "table/column.h"
#include "table/settings_json.h"

namespace interlock::escrow {

namespace {

struct CartLine {
    const CartItem* item; // the first one of its counter
    Adjustment call;
    Delta delta;
    Verdict outcome;
};

// A line for each counter, in the order in which they are taken.
struct Cart {
    CartLine* lines;
    int count;
    Relation* tables; // of the items
    int table_count;
};

} // namespace

static Cart open_cart(const CartItems& items, const Deadline& deadline);
static bool take_all(const Cart& cart);
static NewReservation insert_all(const Cart& cart, int64 ttl, const text* holder);
static Verdict worst_outcome(const Cart& cart);
static Jsonb* short_lines(const Cart& cart);
static void close_cart(const Cart& cart);

extern "C" {
PG_FUNCTION_INFO_V1(reserve_many);

// reserve_many(items, ttl, holder, wait) -> (outcome, token, expires_at, short)
Datum reserve_many(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    int64 ttl = ttl_argument(arguments, 1);
    const text* holder = holder_argument(arguments, 2);
    Deadline deadline = Deadline::argument(arguments, 3);
    PreventCommandIfReadOnly("interlock.reserve_many()");
    PreventCommandIfParallelMode("interlock.reserve_many()");
    CartItems items = items_argument(arguments, 0);
    Cart cart = open_cart(items, deadline);
    NewReservation made = {};
    ErrorData* error = attempt_if([&] {
        bool is_taken = take_all(cart);
        if (is_taken)
            made = insert_all(cart, ttl, holder);
        return is_taken;
    });
    if (error != nullptr)
        ReThrowError(error);
    Verdict outcome = worst_outcome(cart);
    bool reserved = outcome == Verdict::kGranted;
    if (reserved)
        note_deadline(made.expires_at);
    Datum values[4] = {CStringGetTextDatum(word_of(outcome)), Int64GetDatum(made.token),
                       TimestampTzGetDatum(made.expires_at),
                       reserved ? 0 : JsonbPGetDatum(short_lines(cart))};
    bool nulls[4] = {false, !reserved, !reserved, reserved};
    close_cart(cart);
    return result_row(fcinfo, values, nulls);
}
}

static CartLine open_line(const CartItem& item, const Deadline& deadline) {
    Relation rel = open_table(item.rel, RowExclusiveLock);
    const TableInfo* info = table_info(rel);
    const EscrowColumn* column = usable_escrow(rel, info, column_number(rel, item.column));
    require_change_rights(rel, *column);
    EscrowCounter counter = counter_of_item(item, rel, info, column);
    int64 amount = amount_of_item(item, *column);
    return {&item, adjustment_of(counter, deadline), {-amount, amount}, Verdict::kNoRow};
}

static int order_of_lines(const void* left, const void* right) {
    return compare_counters(*static_cast<const CartLine*>(left)->call.counter,
                            *static_cast<const CartLine*>(right)->call.counter);
}

// One line for the items of one counter.
static void merge_lines(Cart* cart) {
    int count = 0;
    for (int i = 0; i < cart->count; i++) {
        CartLine* line = &cart->lines[i];
        if (count == 0 || order_of_lines(&cart->lines[count - 1], line) != 0) {
            cart->lines[count++] = *line;
            continue;
        }
        Delta* delta = &cart->lines[count - 1].delta;
        int64 amount = add_amounts(delta->reserved, line->delta.reserved);
        if (amount > kMostAmount)
            refuse_argument("items", "must not have more than 10^18 steps of one counter");
        *delta = {-amount, amount};
    }
    cart->count = count;
}

static Cart open_cart(const CartItems& items, const Deadline& deadline) {
    Cart cart = {static_cast<CartLine*>(palloc(sizeof(CartLine) * items.count)), items.count,
                 static_cast<Relation*>(palloc(sizeof(Relation) * items.count)), items.count};
    for (int i = 0; i < items.count; i++) {
        cart.lines[i] = open_line(items.first[i], deadline);
        cart.tables[i] = cart.lines[i].call.counter->row.rel;
    }
    qsort(cart.lines, cart.count, sizeof(CartLine), order_of_lines);
    merge_lines(&cart);
    return cart;
}

// False: a line is short. The others are then tested without a wait, for the answer.
static bool take_all(const Cart& cart) {
    bool is_short = false;
    for (int i = 0; i < cart.count; i++) {
        CartLine* line = &cart.lines[i];
        if (is_short)
            line->call.deadline = Deadline::after_milliseconds(0);
        line->outcome = adjust_in_time(&line->call, line->delta);
        is_short = is_short || line->outcome != Verdict::kGranted;
    }
    return !is_short;
}

static NewReservation insert_all(const Cart& cart, int64 ttl, const text* holder) {
    NewReservation made = new_reservation(ttl, holder, cart.count);
    for (int i = 0; i < cart.count; i++) {
        const CartLine& line = cart.lines[i];
        const EscrowCounter& counter = *line.call.counter;
        insert_reservation(made, *counter.column, counter.id, line.delta.reserved);
    }
    return made;
}

// What keeps the cart from being reserved for the longest time.
static Verdict worst_outcome(const Cart& cart) {
    Verdict worst = Verdict::kGranted;
    for (Verdict outcome : {Verdict::kPending, Verdict::kInsufficient, Verdict::kNoRow})
        for (int i = 0; i < cart.count; i++)
            if (cart.lines[i].outcome == outcome)
                worst = outcome;
    return worst;
}

static JsonbValue json_number(const EscrowColumn& column, int64 amount) {
    JsonbValue number;
    number.type = jbvNumeric;
    number.val.numeric = DatumGetNumeric(numeric_of(column, amount));
    return number;
}

static Jsonb* short_line(const CartLine& line) {
    const Adjustment& call = line.call;
    const EscrowColumn& column = *call.counter->column;
    bool found = line.outcome != Verdict::kNoRow && call.knows_after;
    JsonObject object;
    object.add("rel", line.item->rel_text);
    object.add("key", line.item->key);
    object.add("column", line.item->column);
    object.add("amount", json_number(column, line.delta.reserved));
    object.add("outcome", word_of(line.outcome));
    object.add("remaining", found ? json_number(column, call.after.range.inf) : json_null());
    return object.finish();
}

static Jsonb* short_lines(const Cart& cart) {
    JsonBuilder array;
    array.push(WJB_BEGIN_ARRAY);
    for (int i = 0; i < cart.count; i++) {
        if (cart.lines[i].outcome == Verdict::kGranted)
            continue;
        JsonbValue line;
        JsonbToJsonbValue(short_line(cart.lines[i]), &line);
        array.push(WJB_ELEM, &line);
    }
    return array.finish(WJB_END_ARRAY);
}

static void close_cart(const Cart& cart) {
    for (int i = 0; i < cart.table_count; i++)
        close_table(cart.tables[i]);
}

} // namespace interlock::escrow
