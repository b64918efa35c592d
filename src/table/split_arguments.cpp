// For the SQL of findings, which reads the catalog.

#include "table/catalog_trigger.h"

namespace interlock::inline table {

extern "C" {
PG_FUNCTION_INFO_V1(split_arguments);

// split_arguments(arguments): those of a trigger, as pg_trigger.tgargs has them. None of a trigger
// with longer ones than any function of ours gives it.
Datum split_arguments(PG_FUNCTION_ARGS) {
    Datum stored = PG_GETARG_DATUM(0);
    if (PG_ARGISNULL(0) || toast_raw_datum_size(stored) > kMostArgumentBytes)
        return PointerGetDatum(construct_empty_array(TEXTOID));
    const bytea* arguments = DatumGetByteaPP(stored);
    const char* at = VARDATA_ANY(arguments);
    const char* end = at + VARSIZE_ANY_EXHDR(arguments);
    ArrayBuildState* texts = initArrayResult(TEXTOID, CurrentMemoryContext, false);
    while (at < end) {
        auto length = static_cast<int>(strnlen(at, end - at));
        texts = accumArrayResult(texts, PointerGetDatum(cstring_to_text_with_len(at, length)),
                                 false, TEXTOID, CurrentMemoryContext);
        at += length + 1;
    }
    return makeArrayResult(texts, CurrentMemoryContext);
}
}

} // namespace interlock::inline table
