// An array that grows while a scan fills it.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// Adds a value to an array of `room` places, null at first, in the current memory context.
template <typename Value>
void append(Value** first, int* count, int* room, const Value& value) {
    if (*count == *room) {
        *room = Max(8, *room * 2);
        Size size = sizeof(Value) * *room;
        *first =
            static_cast<Value*>(*first == nullptr ? palloc(size) : repalloc_huge(*first, size));
    }
    (*first)[(*count)++] = value;
}

} // namespace interlock::inline server
