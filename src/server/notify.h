// The argument "notify" of the enabling functions, and what a notification contains.
//
// Any role can listen, and the privileges of listeners are not known. So rows are named only if the
// owner of the table allows it.
#pragma once

#include "server/arguments.h"

namespace interlock::inline server {

enum class Notify : uint8 {
    kOff,
    kOn,   // the table, and what has happened
    kFull, // the row, too
};

// The server refuses a payload of 8000 bytes.
constexpr size_t kLongestPayload = 7900;

const char* notify_name(Notify notify);

// False for a word that is none of them.
bool parse_notify(const char* name, Notify* notify);

// Argument n: 'off', 'on' or 'full', or a boolean; 22023 for others.
Notify notify_argument(const Arguments& arguments, int n);

} // namespace interlock::inline server
