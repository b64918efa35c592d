// What reserve and reserve_many have in common.
#pragma once

#include "escrow/adjust.h"

namespace interlock::escrow {

const text* holder_argument(const Arguments& arguments, int n); // null: none
int64 ttl_argument(const Arguments& arguments, int n);

// The outcome of a reservation.
const char* word_of(Verdict verdict);

} // namespace interlock::escrow
