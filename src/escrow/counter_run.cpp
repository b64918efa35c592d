#include "escrow/counter_run.h"

#include "table/own_table.h"

namespace interlock::escrow {

DueCounter due_in_row(uint64 row, MemoryContext context) {
    auto column = [row](int n) {
        bool is_null;
        return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, n, &is_null);
    };
    DueCounter due = {DatumGetInt64(column(1)), DatumGetObjectId(column(2)), {}, nullptr};
    if (!OidIsValid(due.rel))
        return due;
    due.column = *DatumGetName(column(3));
    due.key =
        static_cast<text*>(in_context(context, [&] { return PG_DETOAST_DATUM_COPY(column(4)); }));
    return due;
}

CounterRun begin_counter_run(SweepRun* run) {
    constexpr TimestampTz kLeast = USECS_PER_SEC / 10;
    end_table(); // that of the run before
    TimestampTz stop_at = Max(run->stop_at, GetCurrentTimestamp() + kLeast);
    return {run, CurrentMemoryContext, stop_at, NIL, false, false};
}

bool is_late(const CounterRun& counters) {
    return counters.begun && GetCurrentTimestamp() > counters.stop_at;
}

bool is_over(CounterRun* counters) {
    if (is_late(*counters))
        return true;
    counters->begun = true;
    return false;
}

// Where nothing could be done the next run can wait.
void come_again_for_rest(CounterRun* counters) {
    come_again(counters->run,
               counters->has_worked ? counters->run->start : GetCurrentTimestamp() + kRetryLocked);
}

int longest_turn(const CounterRun& counters) {
    constexpr int kLongest = 300; // milliseconds
    return kLongest * counters.run->pace;
}

void leave_out(CounterRun* counters, Oid rel) {
    counters->left_out = lappend_oid(counters->left_out, rel);
}

bool has_internal_table(const char* name) {
    return OidIsValid(internal_schema()) && OidIsValid(get_relname_relid(name, internal_schema()));
}

} // namespace interlock::escrow
