#include "server/key_parts.h"

#include "server/arguments.h"
#include "server/stable_text.h"

namespace interlock::inline server {

static KeyParts no_parts_yet(int count) {
    if (count == 0)
        refuse_empty("parts");
    return {static_cast<char**>(palloc(sizeof(char*) * count)), count};
}

static void refuse_null(bool is_null, int i) {
    if (is_null)
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        errmsg("part %d of the key must not be null", i + 1)));
}

// The parts of a function whose first arguments are texts, and whose next one is VARIADIC "any".
static KeyParts parts_after_texts(FunctionCallInfo fcinfo, int texts) {
    Datum* values;
    bool* nulls;
    Oid* types;
    int count = extract_variadic_args(fcinfo, texts, true, &values, &types, &nulls);
    if (count < 0) // VARIADIC of a null array
        (void)Arguments(fcinfo).required(texts, "parts");
    KeyParts parts = no_parts_yet(texts + count);
    for (int i = 0; i < texts; i++) {
        refuse_null(PG_ARGISNULL(i), i);
        parts.texts[i] = text_to_cstring(PG_GETARG_TEXT_PP(i));
    }
    for (int i = 0; i < count; i++) {
        refuse_null(nulls[i], texts + i);
        parts.texts[texts + i] = stable_text(types[i], values[i]);
    }
    return parts;
}

KeyParts key_parts(FunctionCallInfo fcinfo) {
    Datum* values;
    bool* nulls;
    int count;
    deconstruct_array(DatumGetArrayTypeP(Arguments(fcinfo).required(0, "parts")), TEXTOID, -1,
                      false, TYPALIGN_INT, &values, &nulls, &count);
    KeyParts parts = no_parts_yet(count);
    for (int i = 0; i < count; i++) {
        CHECK_FOR_INTERRUPTS();
        refuse_null(nulls[i], i);
        parts.texts[i] = TextDatumGetCString(values[i]);
    }
    return parts;
}

KeyParts any_key_parts(FunctionCallInfo fcinfo) { return parts_after_texts(fcinfo, 0); }

KeyParts text_and_any_key_parts(FunctionCallInfo fcinfo) { return parts_after_texts(fcinfo, 1); }

} // namespace interlock::inline server
