// Reading or locking one row by its key without a statement: what the server's executor would do
// for
//
//     SELECT ... FROM ONLY table WHERE key = ... [FOR ...]
//
// where the case is plain (direct_probe.h).
#pragma once

#include "direct_probe.h"
#include "row.h"

namespace interlock {

// kDone when visit(row) was called, with the row as a fresh snapshot sees it, or its newest version
// once locked. The row is good until visit returns.
DirectOutcome read_directly(const KeyedRow& row, RowLock lock, RowCallback visit);

template <typename Visit>
DirectOutcome read_directly(const KeyedRow& row, RowLock lock, Visit&& visit) {
    auto tell = [](void* closure, HeapTuple version) {
        (*static_cast<std::remove_reference_t<Visit>*>(closure))(version);
        return true;
    };
    return read_directly(row, lock, RowCallback{tell, &visit});
}

} // namespace interlock
