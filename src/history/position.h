// How far a reader of a history has read. The position says which transactions it has seen. While
// the reader reads the rest page by page, the position also has the id of the last entry.
//
// Neither ids nor times are in the order of commits. A reader that remembers one of them would miss
// a transaction that commits late. So it remembers a snapshot, as text:
//
//     xmin:xmax:xip[,xip...]                 as pg_snapshot prints it
//     xmin:xmax:xip...;xmin:xmax:xip...;id   the seen snapshot, the one being read, its last entry
#pragma once

#include "server/server.h"

namespace interlock::history {

// Transactions that had ended: those below xmax that are not in the list of running ones.
struct SeenTransactions {
    uint64 xmin; // all below had ended
    uint64 xmax;
    Datum running; // bigint[]
};

struct Position {
    SeenTransactions seen;
    bool is_inside; // the position is within a page
    SeenTransactions reading;
    int64 id;
};

// Raises 22023 for a text that is no position, and for a position that this server has not reached:
// it is from another server, or from before a restore.
Position parse_position(const char* text);
char* print_position(const Position& position);

// What the active snapshot shows. The current transaction counts as running.
SeenTransactions seen_now();

} // namespace interlock::history
