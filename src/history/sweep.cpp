// The history's part in a run of the sweeper: entries past retention are deleted.

#include "history/history.h"
#include "history/partition_retention.h"
#include "sweeper/sweeper.h"
#include "sweeper/task.h"

namespace interlock::history {

static void maintain_partitions_of(SweepRun* run, Oid table, int longest) {
    PartitionWork work = {0, DT_NOEND};
    char message[kErrorBytes] = "";
    if (in_sweep_transaction(message, longest, [&] {
            if (begin_table(run, table))
                work = maintain_partitions(table);
        }))
        come_again(run, work.next);
    else
        note_table_failure(run, table, message);
}

// A table whose history is trimmed, batch by batch; smaller ones when one takes too long or fails.
static void trim_table(SweepRun* run, Oid table, TimestampTz stop_at) {
    constexpr TrimResult kLeftOut = {0, false, 0, false, DT_NOEND};
    const int longest = 500 * run->pace; // milliseconds
    maintain_partitions_of(run, table, longest);
    TrimResult result = {};
    result.more = true;
    char message[kErrorBytes] = "";
    int32 size = sweep_batch;
    do {
        if (!in_sweep_transaction(message, longest, [&] {
                bool begins = begin_table(run, table);
                result = begins ? trim_batch(table, result, size) : kLeftOut;
            }))
            size = size == 1 ? 0 : Max(size / 10, 1);
    } while (result.more && size > 0 && GetCurrentTimestamp() < stop_at);
    if (size == 0)
        note_table_failure(run, table, message);
    else
        come_again(run, result.more ? run->start : result.next);
}

static List* find_tables(SweepRun* run) {
    List* tables = NIL;
    char message[kErrorBytes] = "";
    MemoryContext context = CurrentMemoryContext;
    bool well = in_transaction(message, [&] {
        List* found = trimmed_tables();
        tables = in_context(context, [&] { return list_copy(found); });
    });
    if (!well)
        note_failure(run, "history", message);
    return tables;
}

// Each table has a share of the time that is left, and each run starts with another one. Earlier
// tasks do not leave the tables without any time.
static void trim_histories(SweepRun* run, List*) {
    constexpr TimestampTz kLeast = USECS_PER_SEC / 5;
    List* tables = find_tables(run);
    int count = list_length(tables);
    TimestampTz end = Max(run->stop_at, GetCurrentTimestamp() + kLeast);
    int first = static_cast<int>(run->start % Max(count, 1));
    for (int i = 0; i < count; i++) {
        TimestampTz now = GetCurrentTimestamp();
        if (now >= end) {
            come_again(run, run->start); // the others are due now
            break;
        }
        trim_table(run, list_nth_oid(tables, (first + i) % count), now + (end - now) / (count - i));
    }
}

extern const SweepTask kHistorySweep = {
    .activity = "trimming history",
    .run = trim_histories,
};

} // namespace interlock::history
