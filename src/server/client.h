// The client of this session: whether it is still connected.
//
// A client whose connection is closed does not read the answer. Data that it has sent ahead do not
// count as closed. Background workers have no client, and some systems cannot report a closed
// connection: then nothing happens. A connection that the network has lost without notice is found
// by tcp_keepalives_idle.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// Ends the session with 08006, as the server does with client_connection_check_interval, if the
// client has closed the connection. May reset the latch.
void check_client();

// Waits until the latch is set, the time is over or the client has closed the connection; resets
// the latch and serves interrupts, and check_client in the last case.
void wait_for_latch(long milliseconds, uint32 wait_event);

} // namespace interlock::inline server
