// escrow_check: whether row, parts, reservations and memory of each counter agree.

#include "escrow/change.h"
#include "escrow/list.h"
#include "escrow/reservation.h"
#include "escrow/stored_value.h"
#include "server/arguments.h"
#include "server/result_row.h"
#include "server/scope.h"
#include "table/own_table.h"

namespace interlock::escrow {

namespace {

struct Books {
    bool has_row;
    int64 stored;
    int64 parts;
    int64 reserved;
    bool is_known; // false: open transactions change the counter
    int64 difference;
};

} // namespace

static void check_counter(FunctionCallInfo call, const CounterRow& row);

extern "C" {
PG_FUNCTION_INFO_V1(escrow_check);

// escrow_check(rel) -> (rel, key, column_name, stored, parts, reserved, difference)
Datum escrow_check(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    PreventCommandIfParallelMode("interlock.escrow_check()");
    Oid rel = arguments.is_null(0) ? InvalidOid : arguments.relation(0);
    InitMaterializedSRF(fcinfo, 0);
    CounterRows rows = all_counters(rel);
    for (int i = 0; i < rows.count; i++)
        if (get_rel_name(rows.first[i].rel) != nullptr &&
            may_read_counters(fcinfo, rows.first[i].rel, rows.first[i].label))
            in_scratch([&] { check_counter(fcinfo, rows.first[i]); });
    PG_RETURN_NULL();
}
}

// All under one snapshot, as of now.
static Books read_tables(const EscrowCounter& counter) {
    Books books = {};
    AmountSum parts = {};
    AmountSum reserved = {};
    PushActiveSnapshot(GetLatestSnapshot());
    books.has_row = read_stored_value(counter, &books.stored);
    add_parts(*counter.column, counter.id, &parts);
    add_reservations(*counter.column, counter.id, GetActiveSnapshot(), &reserved);
    PopActiveSnapshot();
    books.parts = parts.amount();
    books.reserved = reserved.amount();
    return books;
}

// What the tables alone say: how far the value is outside of the limits. Without a row all of it is
// too much.
static int64 outside_of_limits(const EscrowCounter& counter, const Books& books) {
    int64 value = add_amounts(books.stored, books.parts);
    int64 with_reserved = add_amounts(value, books.reserved);
    if (!books.has_row)
        return with_reserved;
    if (value < counter.limits.least)
        return value - counter.limits.least;
    return Max(with_reserved - counter.limits.most, 0);
}

// By how much memory has more than the tables. Its limits for takes come first, as they decide
// whether something is sold twice.
static int64 more_in_memory(const EntryState& entry, const Books& books) {
    int64 value = add_amounts(books.stored, books.parts);
    if (entry.range.inf != value)
        return entry.range.inf - value;
    return entry.range.sup - add_amounts(value, books.reserved);
}

static bool read_own_entry(const EscrowCounter& counter, EntryState* entry) {
    return read_entry(counter.id, entry) && entry->epoch == counter.column->epoch;
}

static bool is_unchanged(const EntryState& before, const EntryState& after) {
    return before.is_decided && after.is_decided && before.range.inf == after.range.inf &&
           before.range.sup == after.range.sup;
}

static Books compare_once(const EscrowCounter& counter) {
    EntryState before;
    EntryState after;
    bool has_before = read_own_entry(counter, &before);
    Books books = read_tables(counter);
    bool has_after = read_own_entry(counter, &after);
    books.difference = outside_of_limits(counter, books);
    // Without an entry the next change loads one from the tables.
    books.is_known = books.difference != 0 || (!has_before && !has_after);
    if (!books.is_known && has_before && has_after && is_unchanged(before, after)) {
        books.difference = more_in_memory(after, books);
        books.is_known = true;
    }
    return books;
}

// Memory and tables are read one after the other, and the counter may have changed in between and
// changed back. So a difference counts if it is found each time.
static Books read_books(const EscrowCounter& counter) {
    constexpr int kTries = 5;
    bool always = true;
    Books books = {};
    for (int i = 0; i < kTries; i++) {
        if (i > 0)
            pg_usleep(2000);
        CHECK_FOR_INTERRUPTS();
        books = compare_once(counter);
        if (books.is_known && books.difference == 0)
            return books;
        always = always && books.is_known;
    }
    books.is_known = always;
    return books;
}

// Null: the table, the column or the key has changed so that it has no counter (see advise).
static const EscrowCounter* counter_of_row(Relation rel, const CounterRow& row) {
    const TableInfo* info = table_info(rel);
    const EscrowColumn* column = escrow_of_label(info, NameStr(row.label));
    if (column == nullptr || column->attnum == InvalidAttrNumber || !column->well_formed)
        return nullptr;
    return counter_of_name(rel, info, column, row.id, row.key);
}

static void check_counter(FunctionCallInfo call, const CounterRow& row) {
    Relation rel = try_relation_open(row.rel, AccessShareLock);
    if (rel == nullptr)
        return;
    const EscrowCounter* counter = counter_of_row(rel, row);
    Datum values[7] = {ObjectIdGetDatum(row.rel), PointerGetDatum(row.key),
                       NameGetDatum(&row.label)};
    bool nulls[7] = {false, false, false, true, true, true, true};
    if (counter != nullptr) {
        const EscrowColumn& column = *counter->column;
        Books books = read_books(*counter);
        values[2] = NameGetDatum(&column.name);
        values[3] = numeric_of(column, books.stored);
        values[4] = numeric_of(column, books.parts);
        values[5] = numeric_of(column, books.reserved);
        values[6] = numeric_of(column, books.difference);
        nulls[3] = !books.has_row;
        nulls[4] = nulls[5] = false;
        nulls[6] = !books.is_known;
    }
    add_result_row(reinterpret_cast<ReturnSetInfo*>(call->resultinfo), values, nulls);
    relation_close(rel, AccessShareLock);
}

} // namespace interlock::escrow
