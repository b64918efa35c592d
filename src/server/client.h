// Whether the client of this session is still connected.
//
// A client that has closed its connection does not read the answer. A connection that still has
// unread data from the client does not count as closed. Nothing happens in a background worker,
// which has no client, and on systems that cannot report a closed connection. tcp_keepalives_idle
// finds a connection that the network has lost without notice.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// If the client has closed the connection, ends the session with 08006, as the server does for
// client_connection_check_interval. May reset the latch.
void check_client();

// Waits until the latch is set, the time is over, or the client has closed the connection. Then it
// resets the latch and handles interrupts. In the last case it also calls check_client().
void wait_for_latch(long milliseconds, uint32 wait_event);

} // namespace interlock::inline server
