#include "idempotency/storable.h"

#include "server/arguments.h"

namespace interlock::idempotency {

constexpr int kMostLevels = 1000;
constexpr Size kMostBytes = 1024 * 1024;
constexpr Size kMostOfByte = 6;            // a byte of a string, as \u0001
constexpr Size kMostOfNumbers = 64 * 1024; // besides as many bytes of strings

// As it can be printed at most.
static Size text_of(const JsonbValue& value) {
    constexpr Size kRest = 8;
    if (value.type == jbvString)
        return kRest + kMostOfByte * static_cast<Size>(value.val.string.len);
    if (value.type != jbvNumeric)
        return kRest;
    char* digits =
        DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(value.val.numeric)));
    Size length = strlen(digits);
    pfree(digits);
    return kRest + length;
}

// Null: it is readable.
static const char* fault_of(Jsonb* json) {
    const Size most = kMostOfNumbers + (kMostOfByte + 2) * VARSIZE(json);
    int level = 0;
    Size text = 0;
    JsonbIterator* iterator = JsonbIteratorInit(&json->root);
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE;) {
        CHECK_FOR_INTERRUPTS();
        if (token == WJB_BEGIN_ARRAY || token == WJB_BEGIN_OBJECT)
            level++;
        else if (token == WJB_END_ARRAY || token == WJB_END_OBJECT)
            level--;
        else
            text += text_of(value);
        if (level > kMostLevels)
            return "is nested too deeply";
        if (text > most)
            return "is too long as text";
    }
    return nullptr;
}

void require_readable(const char* name, NullableDatum json) {
    const char* fault = json.isnull ? nullptr : fault_of(DatumGetJsonbP(json.value));
    if (fault != nullptr)
        ereport(ERROR,
                (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("argument \"%s\" %s", name, fault),
                 errhint("It may have %d levels, and no numbers of thousands of digits.",
                         kMostLevels)));
}

void require_small(const char* name, NullableDatum json) {
    if (!json.isnull && toast_raw_datum_size(json.value) > kMostBytes)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("argument \"%s\" is too large", name),
                        errhint("It may have 1 MB. Store a reference to what is larger.")));
    require_readable(name, json);
}

void require_short(const char* name, NullableDatum text) {
    constexpr size_t kMost = 1024;
    if (!text.isnull && toast_raw_datum_size(text.value) - VARHDRSZ > kMost)
        refuse_long(name, kMost);
}

} // namespace interlock::idempotency
