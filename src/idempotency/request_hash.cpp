// The hash of a request. jsonb has put members in one order and resolved escapes and duplicates
// already; numbers are taken as they are sent in binary, which is one form for equal numbers but
// for the digits to show. Every value is preceded by its kind and length, so that different
// structures have different bytes.

#include "idempotency/idempotency.h"
#include "server/arguments.h"

namespace interlock::idempotency {

extern "C" {
PG_FUNCTION_INFO_V1(idempotency_request_hash);

// idempotency_request_hash(request)
Datum idempotency_request_hash(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    return hash_request(arguments.jsonb(0, "request")).value;
}
}

static void add_bytes(StringInfo out, char kind, const char* bytes, int length) {
    char digits[12];
    appendStringInfoChar(out, kind);
    appendBinaryStringInfo(out, digits, pg_ltoa(length, digits));
    appendStringInfoChar(out, ':');
    appendBinaryStringInfo(out, bytes, length);
}

// ndigits, weight and sign, then the scale to show, then the digits: 16 bits each.
static void add_number(StringInfo out, Numeric number) {
    constexpr int kScale = 3 * sizeof(int16);
    constexpr int kDigits = 4 * sizeof(int16);
    bytea* sent = DatumGetByteaP(DirectFunctionCall1(numeric_send, NumericGetDatum(number)));
    add_bytes(out, 'd', VARDATA(sent), kScale);
    add_bytes(out, 'd', VARDATA(sent) + kDigits,
              static_cast<int>(VARSIZE(sent)) - VARHDRSZ - kDigits);
    pfree(sent);
}

static void add_value(StringInfo out, const JsonbValue& value) {
    switch (value.type) {
    case jbvNull:
        appendStringInfoChar(out, 'n');
        break;
    case jbvBool:
        appendStringInfoChar(out, value.val.boolean ? 't' : 'f');
        break;
    case jbvNumeric:
        add_number(out, value.val.numeric);
        break;
    default:
        add_bytes(out, 's', value.val.string.val, value.val.string.len);
    }
}

static void add_request(StringInfo out, const Jsonb* request) {
    JsonbIterator* iterator = JsonbIteratorInit(const_cast<JsonbContainer*>(&request->root));
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE;) {
        CHECK_FOR_INTERRUPTS();
        switch (token) {
        case WJB_BEGIN_ARRAY:
            if (!value.val.array.rawScalar)
                appendStringInfoChar(out, '[');
            break;
        case WJB_END_ARRAY:
            appendStringInfoChar(out, ']');
            break;
        case WJB_BEGIN_OBJECT:
            appendStringInfoChar(out, '{');
            break;
        case WJB_END_OBJECT:
            appendStringInfoChar(out, '}');
            break;
        default:
            add_value(out, value);
        }
    }
}

NullableDatum hash_request(const Jsonb* request) {
    if (request == nullptr)
        return {0, true};
    StringInfoData text;
    initStringInfo(&text);
    appendStringInfoSpaces(&text, VARHDRSZ);
    add_request(&text, request);
    SET_VARSIZE(text.data, text.len);
    return {DirectFunctionCall1(sha256_bytea, PointerGetDatum(text.data)), false};
}

} // namespace interlock::idempotency
