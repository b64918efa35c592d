// Where a run of the sweeper stopped, and memory for its errors.
#pragma once

#include "server/server.h"

namespace interlock::inline sweeper {

constexpr int kErrorBytes = 256;

// A place in the order of deadlines: everything up to it has been tried.
struct SweepPosition {
    TimestampTz until = DT_NOBEGIN;
    ItemPointerData row = {{0, 0}, 0};
};

// The tables at which workers had to be ended since a worker came to its end. Such a table would
// end the next worker, too, before the others have had their turn, so it is left out until then.
struct LeftOut {
    static constexpr int kMost = 32;
    Oid tables[kMost]; // of more than there is room for, the last ones
    int count;

    bool has(Oid table) const {
        for (int i = 0; i < Min(count, kMost); i++)
            if (tables[i] == table)
                return true;
        return false;
    }
    void add(Oid table) {
        if (OidIsValid(table))
            tables[count++ % kMost] = table;
    }
};

// Where a run had to stop.
struct SweepPlace {
    Oid table;             // InvalidOid if it did not have to
    SweepPosition reached; // what it had tried there
    bool row_by_row;       // it was in a batch when it was killed
};

} // namespace interlock::inline sweeper
