// Where a run of the sweeper stopped, and memory for its errors.
#pragma once

#include "server/server.h"

namespace interlock {

constexpr int kErrorBytes = 256;

// A place in the order of deadlines: everything up to it has been tried.
struct SweepPosition {
    TimestampTz until = DT_NOBEGIN;
    ItemPointerData row = {{0, 0}, 0};
};

// Where a run had to stop.
struct SweepPlace {
    Oid table;             // InvalidOid if it did not have to
    SweepPosition reached; // what it had tried there
    bool row_by_row;       // it was in a batch when it was killed
};

} // namespace interlock
