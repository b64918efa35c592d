// Lines in the server log about long waits (interlock.log_waits), as those of log_lock_waits.
#pragma once

#include "server/scope.h"
#include "server/server.h"

namespace interlock::inline server {

void define_wait_log_settings();

// A wait that began when this was made. One line is written when it has lasted as long as the
// setting says, and one when it ends.
class WaitLog {
public:
    WaitLog();

    // Whether the first line is to be written now.
    bool is_due() const { return !is_written_ && left() <= 0; }

    // How long to sleep at most, in milliseconds, so that it is written in time.
    int64 shorten(int64 sleep) const { return is_written_ ? sleep : Min(sleep, Max(left(), 1)); }

    // `what` names what is waited for: lease "x". The detail names what is in the way; null: it is
    // not known.
    void write(const char* what, const char* detail);

    // If the first line was written. With no lock held.
    void write_end(const char* what, bool is_acquired) const;

private:
    int64 left() const; // milliseconds
    const char* passed() const;

    bool is_written_ = false;
    instr_time began_;
};
static_assert(std::is_trivially_destructible_v<WaitLog>);

// Runs body(), which waits for a lock of the server: the server writes these lines then, with the
// error context of the caller, and not before it has looked for a deadlock (deadlock_timeout).
template <typename Body>
void logging_lock_wait(Body&& body);

bool logs_lock_waits();
void start_lock_wait_log(); // within with_settings
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
