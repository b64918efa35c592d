// Which process waits for what. The concepts report it to view blocking.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// Something that keeps a process waiting.
struct Blocker {
    int pid = 0;                                   // 0: not a process
    const char* holder = nullptr;                  // a label; null: the name of the process
    Oid role = InvalidOid;                         // InvalidOid: the role of the process
    TimestampTz until = 0;                         // 0: does not end by itself
    TransactionId prepared = InvalidTransactionId; // number of a prepared transaction
    const char* what = nullptr;                    // what it is, if it is no process
};

// More blockers would add nothing for the reader.
constexpr int kMostBlockers = 8;

struct Wait {
    int pid = 0;
    const char* kind = nullptr;
    const char* name = nullptr;   // null: the reader may not see it
    const char* holder = nullptr; // a label; null: the name of the process
    Oid rel = InvalidOid;
    TimestampTz since = 0;
    int blocker_count = 0;
    Blocker blockers[kMostBlockers];

    // Adds a blocker. Returns whether there is room for another one.
    bool add(const Blocker& blocker) {
        if (blocker_count < kMostBlockers)
            blockers[blocker_count++] = blocker;
        return blocker_count < kMostBlockers;
    }
};

// Appends a copy of the wait to the list.
inline void report_wait(List** waits, const Wait& wait) {
    auto* copy = static_cast<Wait*>(palloc(sizeof(Wait)));
    *copy = wait;
    *waits = lappend(*waits, copy);
}

} // namespace interlock::inline server
