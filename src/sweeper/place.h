// Where a run of the sweeper stopped, and room for its errors.
#pragma once

#include "server/server.h"

namespace interlock::inline sweeper {

constexpr int kErrorBytes = 256;

// A place in the order of deadlines. Everything up to it has been tried.
struct SweepPosition {
    TimestampTz until = DT_NOBEGIN;
    ItemPointerData row = {{0, 0}, 0};
};

// The tables at which workers were terminated since the last worker that finished its run. Such a
// table could terminate the next worker too, before other tables are done. So it is left out until
// a worker finishes.
struct LeftOut {
    static constexpr int kMost = 32;
    Oid tables[kMost]; // if there are more, the last ones
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

// Where a run was stopped.
struct SweepPlace {
    Oid table;             // InvalidOid: it was not stopped
    SweepPosition reached; // what it had tried in that table
    bool row_by_row;       // it was killed in a batch
};

} // namespace interlock::inline sweeper
