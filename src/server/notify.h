// Argument "notify" of the enabling functions, and the content of a notification.
//
// Any role can listen, and the privileges of a listener are not known. So a notification names a
// row only if the owner of the table allows it.
#pragma once

#include "server/arguments.h"

namespace interlock::inline server {

enum class Notify : uint8 {
    kOff,
    kOn,   // the table and the event
    kFull, // the row too
};

// The server refuses a payload of 8000 bytes or more.
constexpr size_t kLongestPayload = 7900;

const char* notify_name(Notify notify);

// Returns false if the word is none of the three.
bool parse_notify(const char* name, Notify* notify);

// Argument n: 'off', 'on' or 'full', or a boolean. Raises 22023 for other values.
Notify notify_argument(const Arguments& arguments, int n);

// Whether the server's queue of notifications is less full than this. A full queue would fail the
// transaction. The question removes what all listeners have read, which nothing else does while the
// queue is full.
bool has_room_for_notifications(double most_used);

} // namespace interlock::inline server
