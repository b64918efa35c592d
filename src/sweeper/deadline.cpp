#include "sweeper/deadline.h"

#include "sweeper/state.h"

namespace interlock::inline sweeper {

// The earliest deadline of the current transaction. After a rolled back subtransaction it may be
// too early, which costs one run without work.
static TimestampTz pending_deadline = DT_NOEND;

// At XACT_EVENT_COMMIT the rows are visible to other sessions. Those of a prepared transaction are
// not: a worker that runs before COMMIT PREPARED sees the transaction and schedules another run.
static void report_deadline(XactEvent event, void*) {
    if (pending_deadline == DT_NOEND)
        return;
    if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_PREPARE && event != XACT_EVENT_ABORT)
        return;
    TimestampTz deadline = pending_deadline;
    pending_deadline = DT_NOEND;
    if (event != XACT_EVENT_ABORT)
        report_deadline_now(deadline);
}

void note_deadline(TimestampTz until) {
    if (sweeper_memory_is_there())
        pending_deadline = Min(pending_deadline, until);
}

void report_deadline_now(TimestampTz until) {
    if (!sweeper_memory_is_there())
        return;
    bool earlier = false;
    with_entry(MyDatabaseId, [&](DatabaseEntry* entry) {
        earlier = until < entry->next_deadline;
        lower_deadline(entry, until);
    });
    if (earlier)
        wake_launcher();
}

void report_deadlines() { RegisterXactCallback(report_deadline, nullptr); }

} // namespace interlock::inline sweeper
