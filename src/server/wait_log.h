// Writes lines about long waits to the server log (interlock.log_waits), similar to log_lock_waits.
#pragma once

#include "server/scope.h"
#include "server/server.h"

namespace interlock::inline server {

void define_wait_log_settings();

// A wait. It begins when the object is created. One line is written when the wait has lasted as
// long as the setting says, and another line when it ends.
class WaitLog {
public:
    WaitLog();

    // Whether it is time to write the first line.
    bool is_due() const { return !is_written_ && left() <= 0; }

    // How many milliseconds to sleep at most, so that the first line is written in time.
    int64 shorten(int64 sleep) const { return is_written_ ? sleep : Min(sleep, Max(left(), 1)); }

    // Writes the first line. `what` names what the session waits for, such as: lease "x". `detail`
    // names what it waits behind, or is null if that is not known.
    void write(const char* what, const char* detail);

    // Writes the second line, if the first line was written. No lock may be held.
    void write_end(const char* what, bool is_acquired) const;

private:
    int64 left() const; // milliseconds
    const char* passed() const;

    bool is_written_ = false;
    instr_time began_;
};
static_assert(std::is_trivially_destructible_v<WaitLog>);

// Runs body(), which waits for a lock of the server. The server then writes these lines itself,
// with the error context of the caller. It does so only after its deadlock check
// (deadlock_timeout).
template <typename Body>
void logging_lock_wait(Body&& body);

bool logs_lock_waits();
void start_lock_wait_log(); // only within with_settings
void stop_lock_wait_log();

template <typename Body>
void logging_lock_wait(Body&& body) {
    static_assert(kIsPlainBody<Body>);
    if (!logs_lock_waits()) {
        body();
        return;
    }
    with_settings([&] {
        start_lock_wait_log();
        PG_TRY();
        { body(); }
        PG_FINALLY();
        { stop_lock_wait_log(); }
        PG_END_TRY();
    });
}

} // namespace interlock::inline server
