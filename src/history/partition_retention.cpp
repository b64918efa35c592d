#include "history/partition_retention.h"

#include "history/partition.h"
#include "server/relation_lock.h"
#include "server/scope.h"
#include "server/subtransaction.h"
#include "table/name.h"
#include "table/restricted.h"

namespace interlock::history {

// How long a lock on the history table is waited for.
constexpr const char* kLockTimeout = "100ms";

Oid table_to_trim(const History* history) {
    if (history->keep_versions > 0 || get_rel_relkind(history->table) != RELKIND_PARTITIONED_TABLE)
        return history->table;
    return get_default_partition_oid(history->table);
}

static bool is_past_retention(const Range& range, const History* history, TimestampTz now) {
    return history->keep_versions <= 0 && range.to <= now - history->keep_for;
}

static bool has_past_retention(const Ranges& existing, const History* history, TimestampTz now) {
    for (const Range& each : existing)
        if (is_past_retention(each, history, now))
            return true;
    return false;
}

// When something will be missing or past retention.
static TimestampTz next_time(const Ranges& existing, const History* history, TimestampTz now) {
    TimestampTz next = DT_NOEND;
    if (history->partition_by > 0)
        next = start_of_period(history->partition_by, now) + history->partition_by;
    for (const Range& each : existing)
        if (history->keep_versions <= 0 && each.to < DT_NOEND - history->keep_for &&
            each.to + history->keep_for > now)
            next = Min(next, each.to + history->keep_for);
    return next;
}

// Returns whether all were dropped that retention does not keep.
static bool drop_partitions(const History* history, int32* dropped) {
    Ranges existing = ranges_of(history->table);
    TimestampTz now = GetCurrentTimestamp();
    bool all = true;
    for (const Range& each : existing) {
        if (!is_past_retention(each, history, now))
            continue;
        bool done = drop_partition(each.partition);
        *dropped += done;
        all = all && done;
    }
    return all;
}

// Writers wait behind this lock, so it is not waited for long.
static bool lock_history(Oid history) {
    ErrorData* error = attempt([&] { LockRelationOid(history, AccessExclusiveLock); });
    if (error != nullptr && !is_timeout(error))
        ReThrowError(error);
    return error == nullptr;
}

// Returns whether all is done. The checks of the caller are repeated under the lock.
static bool do_work(const History* history, Oid owner, int32* dropped) {
    bool all = false;
    with_settings([&] {
        (void)set_config_option("lock_timeout", kLockTimeout, PGC_USERSET, PGC_S_SESSION,
                                GUC_ACTION_SAVE, true, 0, false);
        if (!lock_history(history->table) || owner_of_table(history->table) != owner)
            return;
        as_restricted(owner, 0, [&] {
            all = drop_partitions(history, dropped);
            all = create_partitions(history->table, history->partition_by) && all;
        });
    });
    return all;
}

static PartitionWork maintain(Relation rel, const History* history) {
    Relation entries = open_readable_entries(rel, history, AccessShareLock);
    Oid owner = entries->rd_rel->relowner;
    Ranges existing = ranges_of(entries);
    table_close(entries, NoLock);
    TimestampTz now = GetCurrentTimestamp();
    PartitionWork work = {0, DT_NOEND};
    bool all = true;
    if (has_missing(existing, history->partition_by, now) ||
        has_past_retention(existing, history, now)) {
        all = do_work(history, owner, &work.dropped);
        existing = ranges_of(history->table);
    }
    work.next = all ? next_time(existing, history, now) : now + kHistorySweepGap;
    return work;
}

PartitionWork maintain_partitions(Oid relid) {
    constexpr PartitionWork kNothing = {0, DT_NOEND};
    PartitionWork work = {0, GetCurrentTimestamp() + kHistorySweepGap};
    if (!lock_without_waiting(relid, AccessShareLock))
        return work;
    Relation rel = try_relation_open(relid, NoLock);
    if (rel == nullptr)
        return kNothing;
    const History* history = history_of(table_info(rel));
    if (history == nullptr || !has_retention(history) || !has_own_entries(rel, history) ||
        get_rel_relkind(history->table) != RELKIND_PARTITIONED_TABLE)
        work = kNothing;
    else if (lock_without_waiting(history->table, AccessShareLock))
        work = maintain(rel, history);
    relation_close(rel, NoLock);
    return work;
}

} // namespace interlock::history
