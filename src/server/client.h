// The client of this session: whether it is still connected.
//
// A client whose connection is closed does not read the answer. Data that it has sent ahead do not
// count as closed. Sessions without a client, as background workers, and systems that cannot report
// a closed connection are left alone. What the network swallows is not seen: for that the server
// has tcp_keepalives_idle.
#pragma once

#include "server/server.h"

namespace interlock {

// Ends the session with 08006, as the server does with client_connection_check_interval, if the
// client has closed the connection. May reset the latch.
void check_client();

// Waits until the latch is set, the time is over or the client has closed the connection; resets
// the latch and serves interrupts, and check_client in the last case.
void wait_for_latch(long milliseconds, uint32 wait_event);

} // namespace interlock
