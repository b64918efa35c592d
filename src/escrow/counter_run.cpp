#include "escrow/counter_run.h"

#include "table/own_table.h"

namespace interlock {

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
    return {run, CurrentMemoryContext, stop_at, NIL, NIL, NIL, false, false};
}

// A table that fails costs no more time than this.
constexpr int kMostFailures = 3;

bool has_failed(const CounterRun& counters, Oid rel) {
    int failures = 0;
    ListCell* cell;
    foreach (cell, counters.failed)
        failures += lfirst_oid(cell) == rel ? 1 : 0;
    return failures >= kMostFailures;
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

void note_failed(CounterRun* counters, Oid rel, const char* message) {
    note_table_failure(counters->run, rel, message);
    counters->failed = lappend_oid(counters->failed, rel);
}

// Not once more in this run.
void leave_out(CounterRun* counters, Oid rel) {
    for (int i = 0; i < kMostFailures; i++)
        counters->failed = lappend_oid(counters->failed, rel);
}

namespace {

struct Spent {
    Oid owner;
    TimestampTz time;
};

Spent* spent_by(const CounterRun& counters, Oid owner) {
    ListCell* cell;
    foreach (cell, counters.spent) {
        auto* spent = static_cast<Spent*>(lfirst(cell));
        if (spent->owner == owner)
            return spent;
    }
    return nullptr;
}

} // namespace

bool has_had_share(const CounterRun& counters, Oid owner) {
    constexpr TimestampTz kShare = USECS_PER_SEC / 2;
    const Spent* spent = spent_by(counters, owner);
    return spent != nullptr && spent->time >= kShare * counters.run->pace;
}

void note_spent(CounterRun* counters, Oid owner, TimestampTz time) {
    Spent* spent = spent_by(*counters, owner);
    if (spent == nullptr) {
        MemoryContext caller = MemoryContextSwitchTo(counters->context);
        spent = static_cast<Spent*>(palloc0(sizeof(Spent)));
        spent->owner = owner;
        counters->spent = lappend(counters->spent, spent);
        MemoryContextSwitchTo(caller);
    }
    spent->time += time;
}

namespace {

struct UnusedColumn {
    Oid rel;
    NameData name;
};

} // namespace

void note_unused(CounterRun* counters, Oid rel, const NameData& column) {
    auto* unused =
        static_cast<UnusedColumn*>(MemoryContextAlloc(counters->context, sizeof(UnusedColumn)));
    *unused = {rel, column};
    counters->unused = lappend(counters->unused, unused);
}

bool is_unused(const CounterRun& counters, Oid rel, const NameData& column) {
    ListCell* cell;
    foreach (cell, counters.unused) {
        const auto* unused = static_cast<const UnusedColumn*>(lfirst(cell));
        if (unused->rel == rel && strcmp(NameStr(unused->name), NameStr(column)) == 0)
            return true;
    }
    return false;
}

bool has_internal_table(const char* name) {
    return OidIsValid(internal_schema()) && OidIsValid(get_relname_relid(name, internal_schema()));
}

} // namespace interlock
