// Suppressing history: scopes in which writes to one table or to all tables are not recorded.
//
// Scopes nest and are counted. They follow savepoints, and end with the transaction at the latest.
// They are in the memory of this session and affect no other session.
#pragma once

#include "server/server.h"

namespace interlock::history {

struct Suppression {
    bool active;
    const char* reason; // of the innermost scope; null: no reason
};

// Whether writes to the table are suppressed now. `root` is the table where the history is enabled.
Suppression suppression_of(Oid root);

} // namespace interlock::history
