// The known name that an unknown name probably means, for a hint.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// The candidate that takes the fewest letters to change: at most three, as in the server's own
// hints (MAX_FUZZY_DISTANCE in parse_relation.c), and at most half of them. A name of one or two
// letters gets a candidate only if case alone differs, because a number is no misspelling of
// another number.
class Nearest {
public:
    explicit Nearest(std::string_view name);

    void offer(const char* candidate);

    const char* name() const { return nearest_; } // null if there is none

    // A sentence with a space at its end; empty if there is none.
    const char* in_words() const;

private:
    std::string_view name_;
    int limit_;
    const char* nearest_ = nullptr;
};

} // namespace interlock::inline server
