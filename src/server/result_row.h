// The row that a function with several OUT parameters returns.
#pragma once

#include "server/server.h"

namespace interlock {

// A row of the called function's result type.
Datum result_row(FunctionCallInfo fcinfo, Datum* values, bool* nulls);

} // namespace interlock
