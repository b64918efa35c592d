// Returns the row or rows of a function with several OUT parameters.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// A row of the called function's result type, made of the first `count` values. Raises 55000 if the
// result type has more columns, because then SQL of another version created the function.
Datum result_row(FunctionCallInfo fcinfo, int count, Datum* values, bool* nulls);

template <int Count>
Datum result_row(FunctionCallInfo fcinfo, Datum (&values)[Count], bool (&nulls)[Count]) {
    return result_row(fcinfo, Count, values, nulls);
}

// The same for a function that returns several rows.
void add_result_row(const ReturnSetInfo* result, int count, Datum* values, bool* nulls);

template <int Count>
void add_result_row(const ReturnSetInfo* result, Datum (&values)[Count], bool (&nulls)[Count]) {
    add_result_row(result, Count, values, nulls);
}

} // namespace interlock::inline server
