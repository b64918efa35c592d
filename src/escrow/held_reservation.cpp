#include "escrow/held_reservation.h"

#include "escrow/cart.h"
#include "escrow/counter_order.h"
#include "server/caller.h"

namespace interlock::escrow {

static bool may_end(const Reservation& reservation, Oid table, Right right) {
    Oid role = get_role_oid(NameStr(reservation.role), true);
    return (OidIsValid(role) && acts_for(role)) ||
           (right == Right::kRoleOrOwner &&
            SearchSysCacheExists1(RELOID, ObjectIdGetDatum(table)) &&
            acts_for(owner_of_table(table)));
}

static bool may_end(const Held& held, Right right) {
    for (int i = 0; i < held.count; i++)
        if (!may_end(held.rows[i].reservation, held.rows[i].table, right))
            return false;
    return true;
}

// The rows, and the names of their counters.
static Held* find_rows(int64 token) {
    Reservations found = find_reservation(token);
    auto* held = static_cast<Held*>(palloc0(sizeof(Held)));
    held->rows = static_cast<HeldRow*>(palloc0(sizeof(HeldRow) * (found.count + 1)));
    for (int i = 0; i < found.count; i++) {
        HeldRow* row = &held->rows[held->count];
        row->reservation = found.first[i];
        if (read_counter(row->reservation.counter, &row->table, &row->label, &row->key))
            held->count++;
    }
    return held;
}

static int order_of_tables(const void* left, const void* right) {
    Oid one = static_cast<const HeldRow*>(left)->table;
    Oid other = static_cast<const HeldRow*>(right)->table;
    return one < other ? -1 : one > other ? 1 : 0;
}

// Those without a counter come last: they have no gate.
static int order_of_rows(const void* left, const void* right) {
    const EscrowCounter* one = static_cast<const HeldRow*>(left)->counter;
    const EscrowCounter* other = static_cast<const HeldRow*>(right)->counter;
    if (one == nullptr || other == nullptr)
        return (one == nullptr) - (other == nullptr);
    return compare_counters(*one, *other);
}

static EscrowCounter* counter_of_row(const HeldRow& row) {
    const TableInfo* info = table_info(row.rel);
    const EscrowColumn* column = escrow_of_label(info, NameStr(row.label));
    if (column == nullptr)
        return nullptr;
    if (column->attnum == InvalidAttrNumber && column->well_formed)
        raise_column_gone(row.rel, *column);
    column = usable_escrow(row.rel, info, column->attnum);
    return counter_of_name(row.rel, info, column, row.reservation.counter, row.key);
}

// Opens the tables in the order of their OIDs, as reserve_many does, and leaves out those that are
// gone.
static void open_rows(Held* held) {
    qsort(held->rows, held->count, sizeof(HeldRow), order_of_tables);
    int count = 0;
    for (int i = 0; i < held->count; i++) {
        HeldRow row = held->rows[i];
        row.rel = try_relation_open(row.table, RowExclusiveLock);
        if (row.rel == nullptr)
            continue;
        row.counter = counter_of_row(row);
        held->rows[count++] = row;
    }
    held->count = count;
    qsort(held->rows, held->count, sizeof(HeldRow), order_of_rows);
}

// Gate and row of one counter after the other: who ends what has expired of several counters does
// the same (E14).
static bool lock_rows(Held* held) {
    for (int i = 0; i < held->count; i++) {
        HeldRow* row = &held->rows[i];
        if (row->counter != nullptr)
            (void)enter_gate(*row->counter, ShareLock);
        if (!lock_reservation(&row->reservation))
            return false;
    }
    return true;
}

static bool is_live(const Held& held) {
    for (int i = 0; i < held.count; i++)
        if (held.rows[i].counter == nullptr || has_expired(held.rows[i].reservation))
            return false;
    return held.count == held.rows[0].reservation.rows;
}

// Rights come before all waits, so a role that has no right to a token makes nobody wait.
Held* hold_reservation(int64 token, Right right) {
    Held* held = find_rows(token);
    if (!may_end(*held, right))
        return nullptr;
    open_rows(held);
    if (held->count == 0)
        return nullptr;
    if (lock_rows(held) && may_end(*held, right)) {
        held->is_live = is_live(*held);
        return held;
    }
    close_held(held);
    return nullptr;
}

void close_held(const Held* held) {
    for (int i = 0; i < held->count; i++)
        relation_close(held->rows[i].rel, NoLock);
}

} // namespace interlock::escrow
