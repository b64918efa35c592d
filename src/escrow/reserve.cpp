// reserve, and the functions that end or extend a reservation.

#include "escrow/adjust.h"
#include "escrow/reservation.h"
#include "server/arguments.h"
#include "server/caller.h"
#include "server/error.h"
#include "server/result_row.h"
#include "sweeper/deadline.h"
#include "table/own_table.h"

namespace interlock::escrow {

constexpr const char* kOutcomes[] = {"reserved", "insufficient", "pending", "not_found"};
constexpr size_t kMostHolderBytes = 255;

static const text* holder_argument(const Arguments& arguments, int n);
static int64 ttl_argument(const Arguments& arguments, int n);

namespace {

// Who may end a reservation: members of the role that has made it; and to cancel it, the owner of
// the table.
enum class Right : uint8_t { kRole, kRoleOrOwner };

// A reservation that the caller may end, locked, with its counter's gate and table.
struct Held {
    Reservation reservation;
    Relation rel;
    EscrowCounter* counter; // null: the column has no counters any more
};

} // namespace

// Null: there is none with that token, or it is not the caller's, who must not be able to
// distinguish the two.
static Held* hold_reservation(const Arguments& arguments, const char* verb, Right right);
static void close_held(const Held* held);

[[noreturn]] static void raise_reservation_lost(int64 token);

extern "C" {
PG_FUNCTION_INFO_V1(reserve);
PG_FUNCTION_INFO_V1(confirm_reservation);
PG_FUNCTION_INFO_V1(cancel_reservation);
PG_FUNCTION_INFO_V1(extend_reservation);

// reserve(rel, key, column_name, amount, ttl, holder, wait) -> (outcome, token, expires_at)
Datum reserve(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    int64 ttl = ttl_argument(arguments, 4);
    const text* holder = holder_argument(arguments, 5);
    Adjustment call = read_adjustment(arguments, "interlock.reserve()", 6);
    const EscrowColumn& column = *call.counter->column;
    int64 amount = amount_argument(arguments, 3, "amount", column);
    if (amount <= 0)
        refuse_argument("amount", "must be above zero");
    Verdict verdict = adjust_in_time(&call, {-amount, amount});
    Datum values[3] = {CStringGetTextDatum(kOutcomes[static_cast<int>(verdict)]), 0, 0};
    bool nulls[3] = {false, true, true};
    if (verdict == Verdict::kGranted) {
        TimestampTz expires_at = GetCurrentTimestamp() + ttl;
        values[1] =
            Int64GetDatum(insert_reservation(column, call.counter->id, amount, expires_at, holder));
        values[2] = TimestampTzGetDatum(expires_at);
        nulls[1] = nulls[2] = false;
        note_deadline(expires_at);
    }
    close_table(call.counter->row.rel);
    return result_row(fcinfo, values, nulls);
}

// confirm_reservation(token)
Datum confirm_reservation(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Held* held = hold_reservation(arguments, "interlock.confirm_reservation()", Right::kRole);
    if (held == nullptr || held->counter == nullptr || has_expired(held->reservation))
        raise_reservation_lost(PG_GETARG_INT64(0));
    int64 amount = amount_of_reservation(*held->counter->column, held->reservation);
    if (!enter_untested(*held->counter, {0, -amount}, true))
        raise_reservation_lost(PG_GETARG_INT64(0));
    delete_reservation(held->reservation);
    close_held(held);
    PG_RETURN_VOID();
}

// cancel_reservation(token) -> whether it was held until now
Datum cancel_reservation(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Held* held = hold_reservation(arguments, "interlock.cancel_reservation()", Right::kRoleOrOwner);
    if (held == nullptr)
        PG_RETURN_BOOL(false);
    bool expired = has_expired(held->reservation);
    if (held->counter != nullptr) {
        int64 amount = amount_of_reservation(*held->counter->column, held->reservation);
        (void)enter_untested(*held->counter, {amount, -amount}, true);
    }
    delete_reservation(held->reservation);
    close_held(held);
    PG_RETURN_BOOL(!expired);
}

// extend_reservation(token, ttl) -> expires_at
Datum extend_reservation(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    int64 ttl = ttl_argument(arguments, 1);
    Held* held = hold_reservation(arguments, "interlock.extend_reservation()", Right::kRole);
    if (held == nullptr)
        PG_RETURN_NULL();
    TimestampTz expires_at = GetCurrentTimestamp() + ttl;
    bool lives = held->counter != nullptr && !has_expired(held->reservation);
    if (lives) {
        move_deadline(held->reservation, expires_at);
        note_deadline(expires_at);
    }
    close_held(held);
    if (!lives)
        PG_RETURN_NULL();
    PG_RETURN_TIMESTAMPTZ(expires_at);
}
}

static const text* holder_argument(const Arguments& arguments, int n) {
    if (arguments.is_null(n))
        return nullptr;
    std::string_view holder = arguments.view(n, "holder");
    if (holder.empty())
        refuse_empty("holder");
    if (holder.size() > kMostHolderBytes)
        refuse_long("holder", kMostHolderBytes);
    return cstring_to_text_with_len(holder.data(), static_cast<int>(holder.size()));
}

static int64 ttl_argument(const Arguments& arguments, int n) {
    return duration_argument(arguments.interval(n, "ttl"), "ttl",
                             "For example '15 min', or 900 for seconds.");
}

static bool may_end(const Reservation& reservation, Oid table, Right right) {
    Oid role = get_role_oid(NameStr(reservation.role), true);
    return (OidIsValid(role) && acts_for(role)) ||
           (right == Right::kRoleOrOwner &&
            SearchSysCacheExists1(RELOID, ObjectIdGetDatum(table)) &&
            acts_for(owner_of_table(table)));
}

// The counter, its table open and its gate entered; false: the counter or its table is gone.
static bool open_counter(Held* held, Oid table, const NameData& name, text* key) {
    held->rel = try_relation_open(table, RowExclusiveLock);
    if (held->rel == nullptr)
        return false;
    const TableInfo* info = table_info(held->rel);
    const EscrowColumn* column = escrow_of_label(info, NameStr(name));
    if (column == nullptr)
        return true;
    if (column->attnum == InvalidAttrNumber && column->well_formed)
        raise_column_gone(held->rel, *column);
    column = usable_escrow(held->rel, info, column->attnum);
    held->counter = counter_of_name(held->rel, info, column, held->reservation.counter, key);
    if (held->counter == nullptr)
        return true;
    (void)enter_gate(*held->counter, ShareLock);
    return true;
}

// Rights come before all waits, so a role that has no right to a token makes nobody wait.
static Held* hold_reservation(const Arguments& arguments, const char* verb, Right right) {
    int64 token = DatumGetInt64(arguments.required(0, "token"));
    PreventCommandIfReadOnly(verb);
    PreventCommandIfParallelMode(verb);
    auto* held = static_cast<Held*>(palloc0(sizeof(Held)));
    Oid table;
    NameData column;
    text* key;
    if (!find_reservation(token, &held->reservation) ||
        !read_counter(held->reservation.counter, &table, &column, &key) ||
        !may_end(held->reservation, table, right) || !open_counter(held, table, column, key))
        return nullptr;
    if (lock_reservation(token, &held->reservation) && may_end(held->reservation, table, right))
        return held;
    close_held(held);
    return nullptr;
}

static void close_held(const Held* held) { relation_close(held->rel, NoLock); }

static void raise_reservation_lost(int64 token) {
    const char* number = psprintf(INT64_FORMAT, token);
    ereport(ERROR, (errcode(kClaimLost), errmsg("reservation %s has expired or ended", number),
                    errdetail_internal("%s", json_object({{"token", number}})),
                    errhint("Reserve again.")));
}

} // namespace interlock::escrow
