// Writes of this extension that the trigger of escrow counters lets pass.
#pragma once

#include "execution/probe.h"
#include "server/scope.h"

namespace interlock::escrow {

// The row and column that this session is writing for a counter.
struct EscrowWrite {
    KeyedRow row;
    AttrNumber column;
    int64 value; // the value that the row gets
    bool passed; // the trigger has fired; later writes by other triggers are not ours
};

extern EscrowWrite* escrow_write; // null: no such write

template <typename Body>
void as_escrow_write(const KeyedRow& row, AttrNumber column, int64 value, Body&& body) {
    EscrowWrite write = {row, column, value, false};
    with_current(&escrow_write, &write, body);
}

} // namespace interlock::escrow
