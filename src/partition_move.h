// Rows that an UPDATE moves to another partition: the server deletes them in one and inserts them
// into the other.
#pragma once

#include "relation.h"
#include "row_change.h"

namespace interlock {

// The partitioned table at the top; the table itself when it is no partition.
Oid root_of(Relation rel);

// Whether the new row does not fit into the partition that has the old one.
bool moves_row(const RowChange& change);

// Calls visit(partition, triggers) for the partition that the new row goes to. Raises 23514 when
// there is none.
using PartitionVisitor = void (*)(void* closure, Relation partition, const TriggerDesc* triggers);
void in_new_partition(const RowChange& change, PartitionVisitor visit, void* closure);

template <typename Visit>
void in_new_partition(const RowChange& change, Visit&& visit) {
    auto call = [](void* closure, Relation partition, const TriggerDesc* triggers) {
        (*static_cast<std::remove_reference_t<Visit>*>(closure))(partition, triggers);
    };
    in_new_partition(change, call, &visit);
}

} // namespace interlock
