#include "server/client.h"

namespace interlock::inline server {

static bool can_check() { return MyProcPort != nullptr && WaitEventSetCanReportClosed(); }

// Of FeBeWaitSet: the connection, the latch, and the end of the postmaster.
constexpr int kConnection = 0;
constexpr int kEvents = 3;

// What WaitLatch does, with the set of events that the server keeps for the connection.
static bool wait_with_client(long milliseconds, uint32 wait_event) {
    WaitEvent events[kEvents];
    ModifyWaitEvent(FeBeWaitSet, kConnection, WL_SOCKET_CLOSED, nullptr);
    int count = WaitEventSetWait(FeBeWaitSet, milliseconds, events, kEvents, wait_event);
    bool is_closed = false;
    for (int i = 0; i < count; i++) {
        if ((events[i].events & WL_POSTMASTER_DEATH) != 0)
            proc_exit(1);
        is_closed = is_closed || (events[i].events & WL_SOCKET_CLOSED) != 0;
    }
    return !is_closed;
}

void check_client() {
    if (!can_check() || pq_check_connection())
        return;
    ClientConnectionLost = 1;
    InterruptPending = 1;
    CHECK_FOR_INTERRUPTS();
}

void wait_for_latch(long milliseconds, uint32 wait_event) {
    bool is_connected = true;
    if (can_check())
        is_connected = wait_with_client(milliseconds, wait_event);
    else
        (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, milliseconds,
                        wait_event);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
    if (!is_connected)
        check_client();
}

} // namespace interlock::inline server
