// What the view escrow calls.

#include "escrow/memory.h"
#include "server/arguments.h"
#include "server/result_row.h"

using namespace interlock;

extern "C" {
PG_FUNCTION_INFO_V1(escrow_entry);

// escrow_entry(counter) -> (inf, sup), in the smallest steps of the column
Datum escrow_entry(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Range range = {};
    bool found = read_entry(DatumGetInt64(arguments.required(0, "counter")), &range);
    Datum values[2] = {Int64GetDatum(range.inf), Int64GetDatum(range.sup)};
    bool nulls[2] = {!found, !found};
    return result_row(fcinfo, values, nulls);
}
}
