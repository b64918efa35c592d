#include "escrow/errors.h"

#include "server/error.h"

namespace interlock::escrow {

static const char* text_of(const EscrowCounter& counter, int64 amount) {
    return DatumGetCString(DirectFunctionCall1(numeric_out, numeric_of(*counter.column, amount)));
}

static const char* detail_of(const EscrowCounter& counter, Verdict verdict, const char* key,
                             const char* limit, const char* remaining) {
    bool pending = verdict == Verdict::kPending;
    return json_object({{"table", shown_name(counter.row.rel)},
                        {"key", nullptr, key},
                        {"column", NameStr(counter.column->name)},
                        {"outcome", pending ? "pending" : "insufficient"},
                        {"limit", limit},
                        {"remaining", remaining}});
}

// Without a state it is not known what it waits for.
static int hint_for(const EscrowCounter& counter, int64 delta, Verdict verdict,
                    const CounterState* state) {
    if (verdict != Verdict::kPending)
        return 0;
    return state == nullptr || can_fit(*state, delta, counter.limits)
               ? errhint(
                     "Other transactions that change it have not ended: try again, or give a "
                     "longer wait.")
               : errhint(
                     "Reservations or the current transaction hold the missing amount. View "
                     "interlock.reservations shows when they expire.");
}

void raise_not_enough(const EscrowCounter& counter, int64 delta, Verdict verdict,
                      const CounterState* state) {
    const char* column = NameStr(counter.column->name);
    const char* table = RelationGetRelationName(counter.row.rel);
    const char* change = text_of(counter, delta);
    const char* remaining = state != nullptr ? text_of(counter, state->range.inf) : nullptr;
    const char* limit = text_of(counter, delta < 0 ? counter.limits.least : counter.limits.most);
    const char* key = state != nullptr ? key_to_text(counter.row.info, *counter.row.key) : nullptr;
    ereport(
        ERROR,
        (errcode(kNotEnoughLeft),
         delta < 0 ? errmsg("not enough left in column \"%s\" of table \"%s\" to change it by %s",
                            column, table, change)
                   : errmsg("not enough room in column \"%s\" of table \"%s\" to change it by %s",
                            column, table, change),
         errdetail_internal("%s", detail_of(counter, verdict, key, limit, remaining)),
         hint_for(counter, delta, verdict, state)));
}

void raise_does_not_fit(const EscrowCounter& counter, Verdict verdict) {
    ereport(ERROR,
            (errcode(kNotEnoughLeft),
             errmsg("not enough left, or not enough room, in column \"%s\" of table \"%s\" for "
                    "this change",
                    NameStr(counter.column->name), RelationGetRelationName(counter.row.rel)),
             errdetail_internal("%s", detail_of(counter, verdict, nullptr, nullptr, nullptr)),
             hint_for(counter, 0, verdict, nullptr)));
}

void raise_out_of_limits(Relation rel, const EscrowColumn& column) {
    ereport(ERROR, (errcode(kNotEnoughLeft),
                    errmsg("value of column \"%s\" of table \"%s\" is outside of the limits of its "
                           "escrow counter",
                           NameStr(column.name), RelationGetRelationName(rel))));
}

} // namespace interlock::escrow
