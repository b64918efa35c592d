// One time limit for all waits of a call.
#pragma once

#include "server/arguments.h"
#include "server/scope.h"

namespace interlock::inline server {

class Deadline {
public:
    // Reads argument "wait" of a function. Null waits as long as lock_timeout allows. Zero does not
    // wait. Raises 22023 for a value that is no duration. If lock_timeout ends first, it ends the
    // call.
    static Deadline argument(const Arguments& arguments, int n);
    static Deadline after_milliseconds(int64 wait); // negative: no limit

    bool is_never() const { return limit_ < 0; }
    bool has_passed() const { return limit_ >= 0 && left() <= 0; }

    // The remaining time in milliseconds, at least one. Only for a wait with a limit.
    int64 left_in_milliseconds() const { return Max(left(), 0) / 1000 + 1; }

    // Runs body(). If body() still waits for a lock at the deadline, the wait raises 55P03. Only to
    // be called before the deadline has passed.
    template <typename Body>
    void bound(Body&& body) const;

private:
    explicit Deadline(int64 limit);
    int64 left() const;
    void set_lock_timeout() const;

    int64 limit_; // microseconds from the start, negative: no limit
    instr_time start_;
};

template <typename Body>
void Deadline::bound(Body&& body) const {
    with_settings([&] {
        if (!is_never())
            set_lock_timeout();
        body();
    });
}

static_assert(std::is_trivially_destructible_v<Deadline>);

} // namespace interlock::inline server
