// The limit of all waits of one call together.
#pragma once

#include "server/arguments.h"
#include "server/scope.h"

namespace interlock::inline server {

class Deadline {
public:
    // The argument "wait" of a verb: null waits as lock_timeout says, zero not at all. Raises 22023
    // for what is no duration. The setting lock_timeout ends the call too, when that comes first.
    static Deadline argument(const Arguments& arguments, int n);
    static Deadline after_milliseconds(int64 wait); // negative: for ever

    bool is_never() const { return limit_ < 0; }
    bool has_passed() const { return limit_ >= 0 && left() <= 0; }

    // The remaining time in milliseconds, at least one. Only for a wait with an end.
    int64 left_in_milliseconds() const { return Max(left(), 0) / 1000 + 1; }

    // Runs body() so that a wait for a lock in it ends at the deadline with 55P03. Only before it
    // has passed.
    template <typename Body>
    void bound(Body&& body) const;

private:
    explicit Deadline(int64 limit);
    int64 left() const;
    void set_lock_timeout() const;

    int64 limit_; // microseconds from the start, negative: for ever
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
