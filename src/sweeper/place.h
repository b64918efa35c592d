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

// The tables in which workers had to be ended since one came to its end. What ends a worker does so
// again, before the others have had their turn, so each is left out until then. Where a role has
// two of them, all of its tables are.
struct LeftOut {
    static constexpr int kMost = 32;
    struct {
        Oid table;
        Oid owner;
    } tables[kMost]; // of more than there is room for, the last ones
    int count;

    bool has(Oid table, Oid owner) const {
        int of_owner = 0;
        for (int i = 0; i < Min(count, kMost); i++) {
            if (tables[i].table == table)
                return true;
            of_owner += tables[i].owner == owner ? 1 : 0;
        }
        return of_owner > 1;
    }
    void add(Oid table, Oid owner) {
        if (OidIsValid(owner))
            tables[count++ % kMost] = {table, owner};
    }
};

// Where a run had to stop.
struct SweepPlace {
    Oid table;             // InvalidOid if it did not have to
    SweepPosition reached; // what it had tried there
    bool row_by_row;       // it was in a batch when it was killed
};

} // namespace interlock
