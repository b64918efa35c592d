// Drops and creates partitions of a history table (history/partition.h), and names the table whose
// entries are trimmed one by one.
#pragma once

#include "history/history.h"

namespace interlock::history {

// The table whose entries are trimmed one by one. InvalidOid if there is none.
Oid table_to_trim(const History* history);

// Drops the partitions of the table's history that retention does not keep, and creates those that
// are missing. Does nothing if another session has locked one of the tables. Warns of a partition
// that cannot be created or dropped.
struct PartitionWork {
    int32 dropped;
    TimestampTz next; // when there will be more to do; DT_NOEND: never
};
PartitionWork maintain_partitions(Oid relid);

} // namespace interlock::history
