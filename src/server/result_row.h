// The row, or rows, that a function with several OUT parameters returns.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// A row of the called function's result type, of the first values. Raises 55000 if that has more
// columns: SQL of another version created the function.
Datum result_row(FunctionCallInfo fcinfo, int count, Datum* values, bool* nulls);

template <int Count>
Datum result_row(FunctionCallInfo fcinfo, Datum (&values)[Count], bool (&nulls)[Count]) {
    return result_row(fcinfo, Count, values, nulls);
}

// The same for a row of a function that returns several.
void add_result_row(const ReturnSetInfo* result, int count, Datum* values, bool* nulls);

template <int Count>
void add_result_row(const ReturnSetInfo* result, Datum (&values)[Count], bool (&nulls)[Count]) {
    add_result_row(result, Count, values, nulls);
}

} // namespace interlock::inline server
