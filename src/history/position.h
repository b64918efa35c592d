// How far a reader of a history has come: which transactions it has seen, and while it works
// through the rest of them a page at a time, up to which id.
//
// Neither ids nor times are in the order of commits, so that a reader that remembers one of them
// would miss what commits late. It remembers a snapshot instead, as text:
//
//     xmin:xmax:xip[,xip...]                      as pg_snapshot prints it
//     xmin:xmax:xip...;xmin:xmax:xip...;id        seen, reading, and up to this entry of it
#pragma once

#include "server/server.h"

namespace interlock::history {

// Transactions that were over: those below xmax but for the running ones.
struct SeenTransactions {
    uint64 xmin; // all below were over
    uint64 xmax;
    Datum running; // bigint[]
};

struct Position {
    SeenTransactions seen;
    bool is_inside; // of a page
    SeenTransactions reading;
    int64 id;
};

// 22023 for a text that is none, and for one of a server that is further than this one.
Position parse_position(const char* text);
char* print_position(const Position& position);

// What the active snapshot shows. The current transaction is running.
SeenTransactions seen_now();

} // namespace interlock::history
