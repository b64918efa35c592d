#include "server/key_parts.h"

#include "server/arguments.h"
#include "server/stable_text.h"

namespace interlock {

namespace {

KeyParts no_parts_yet(int count) {
    if (count == 0)
        refuse_empty("parts");
    return {static_cast<char**>(palloc(sizeof(char*) * count)), count};
}

void refuse_null(bool is_null, int i) {
    if (is_null)
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        errmsg("part %d of the key must not be null", i + 1)));
}

} // namespace

KeyParts key_parts(FunctionCallInfo fcinfo) {
    Datum* values;
    bool* nulls;
    int count;
    deconstruct_array(DatumGetArrayTypeP(Arguments(fcinfo).required(0, "parts")), TEXTOID, -1,
                      false, TYPALIGN_INT, &values, &nulls, &count);
    KeyParts parts = no_parts_yet(count);
    for (int i = 0; i < count; i++) {
        refuse_null(nulls[i], i);
        parts.texts[i] = TextDatumGetCString(values[i]);
    }
    return parts;
}

KeyParts any_key_parts(FunctionCallInfo fcinfo) {
    Datum* values;
    bool* nulls;
    Oid* types;
    int count = extract_variadic_args(fcinfo, 0, true, &values, &types, &nulls);
    if (count < 0) // VARIADIC of a null array
        (void)Arguments(fcinfo).required(0, "parts");
    KeyParts parts = no_parts_yet(count);
    for (int i = 0; i < count; i++) {
        refuse_null(nulls[i], i);
        parts.texts[i] = stable_text(types[i], values[i]);
    }
    return parts;
}

} // namespace interlock
