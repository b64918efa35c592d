// Callbacks at the ends of transactions and subtransactions.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// Registers both callbacks at the first call, for the life of the session. A static variable of the
// caller remembers that.
inline void register_once(bool* registered, XactCallback transaction,
                          SubXactCallback subtransaction) {
    if (*registered)
        return;
    RegisterXactCallback(transaction, nullptr);
    RegisterSubXactCallback(subtransaction, nullptr);
    *registered = true;
}

} // namespace interlock::inline server
