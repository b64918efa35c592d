// Partitions of a history table: retention drops a whole partition instead of deleting its entries
// one by one.
//
// A partitioned history table is partitioned by ranges of changed_at. It has a default partition,
// so that no entry, and with it no write of a user, fails because a partition is missing. The
// partitions of the current period and of the next two are created ahead of time. A new partition
// begins no earlier than the time when it is created. So the default partition has no entry that
// belongs into the new partition, unless a clock has gone back.
//
// Only keep_for can be kept by dropping partitions. Then entries of the default partition alone are
// trimmed one by one. With keep_versions, entries are trimmed one by one in all partitions.
//
// To create or drop a partition, the server locks the history table in mode ACCESS EXCLUSIVE.
// The wait for this lock is short, because writers wait behind it. If it fails, the next run of the
// sweeper tries again.
#pragma once

#include "server/server.h"

namespace interlock::history {

// A history table, or a partition of one.
inline bool is_partitioned(Relation rel) {
    return rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
}

// Whether the table can have entries: an ordinary table, or one that is partitioned by ranges of
// changed_at alone. Runs no code of the owner.
bool can_have_entries(Relation rel);

// Opens the partition for an entry of that time, for a writer of the history table, which is open.
// Null if there is none.
Relation open_partition(Relation rel, TimestampTz changed_at);

// Raises 55000 if the partition is no ordinary table or belongs to another role than the history
// table, and 42501 if one of the events would run code of other roles
// (refuse_untrusted_triggers()).
void require_trusted_partition(Relation rel, Relation partition, int16 events);

// The same for all partitions.
void require_trusted_partitions(Relation rel, int16 events);

// A partition with a range: from <= changed_at < to. DT_NOBEGIN and DT_NOEND are no bounds.
struct Range {
    Oid partition;
    TimestampTz from;
    TimestampTz to;
};

// The partitions of a history table in their order, and the default partition.
struct Ranges {
    Range* first;
    int count;
    Oid fallback; // InvalidOid: there is no default partition
    const Range* begin() const { return first; }
    const Range* end() const { return first + count; }
};
Ranges ranges_of(Relation rel);
Ranges ranges_of(Oid history); // which is locked

// The start of the current period. Periods are counted from 2000-01-01 UTC.
TimestampTz start_of_period(int64 width, TimestampTz now);

// Whether create_partitions() would create one.
bool has_missing(const Ranges& existing, int64 width, TimestampTz now);

// Creates the partitions that are missing now, with the current user's rights, for the owner of the
// history table. The caller has locked this table ACCESS EXCLUSIVE. Warns of a partition that
// cannot be created. Returns whether all were created.
bool create_partitions(Oid history, int64 width);

// Drops it. Returns false after a WARNING, or if it is locked.
bool drop_partition(Oid partition);

// Gives a history table or a partition that was just created to its owner, without default
// privileges: those are for tables that their owner fills. Call it inside with_spi.
void give_to_owner(const char* table, Oid owner);

} // namespace interlock::history
