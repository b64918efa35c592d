// reserve: a part that takes from one counter, and the row of the reservation.

#include "escrow/reserve.h"

#include "escrow/reservation.h"
#include "server/arguments.h"
#include "server/result_row.h"
#include "sweeper/deadline.h"

namespace interlock::escrow {

constexpr const char* kOutcomes[] = {"reserved", "insufficient", "pending", "not_found"};
constexpr size_t kMostHolderBytes = 255;

extern "C" {
PG_FUNCTION_INFO_V1(reserve);

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
    Datum values[3] = {CStringGetTextDatum(word_of(verdict)), 0, 0};
    bool nulls[3] = {false, true, true};
    if (verdict == Verdict::kGranted) {
        NewReservation made = new_reservation(ttl, holder, 1);
        insert_reservation(made, column, call.counter->id, amount);
        values[1] = Int64GetDatum(made.token);
        values[2] = TimestampTzGetDatum(made.expires_at);
        nulls[1] = nulls[2] = false;
        note_deadline(made.expires_at);
    }
    close_table(call.counter->row.rel);
    return result_row(fcinfo, values, nulls);
}
}

const text* holder_argument(const Arguments& arguments, int n) {
    if (arguments.is_null(n))
        return nullptr;
    std::string_view holder = arguments.view(n, "holder");
    if (holder.empty())
        refuse_empty("holder");
    if (holder.size() > kMostHolderBytes)
        refuse_long("holder", kMostHolderBytes);
    return cstring_to_text_with_len(holder.data(), static_cast<int>(holder.size()));
}

int64 ttl_argument(const Arguments& arguments, int n) {
    return duration_argument(arguments.interval(n, "ttl"), "ttl",
                             "For example '15 min', or 900 for seconds.");
}

const char* word_of(Verdict verdict) { return kOutcomes[static_cast<int>(verdict)]; }

} // namespace interlock::escrow
