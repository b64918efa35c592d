// Callbacks at the end of transactions and subtransactions.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// At its first call, registers both callbacks for the rest of the session. The caller passes a
// static variable that remembers this.
inline void register_once(bool* registered, XactCallback transaction,
                          SubXactCallback subtransaction) {
    if (*registered)
        return;
    RegisterXactCallback(transaction, nullptr);
    RegisterSubXactCallback(subtransaction, nullptr);
    *registered = true;
}

} // namespace interlock::inline server
