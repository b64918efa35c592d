// The audit of markers that their holders did not end themselves.
#pragma once

#include "marker/write.h"

namespace interlock::inline server {
class Arguments;
} // namespace interlock::inline server

namespace interlock::marker {

// An entry of row_lock_audit.
struct LostMarker {
    const char* action;             // the function
    const char* holder;             // who had the row
    const char* taken_by = nullptr; // who has it now; null: nobody
    TimestampTz until = DT_NOBEGIN; // DT_NOBEGIN: it is not recorded
    const char* reason = nullptr;
};

// Writes an entry for the row of the call, which the transaction has just written.
void audit_loss(const MarkedRow& call, const LostMarker& lost);

// Argument n, named "reason". Raises 22023 if it is empty.
const char* reason_argument(const Arguments& arguments, int n);

} // namespace interlock::marker
