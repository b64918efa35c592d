#include "idempotency/row.h"

#include "execution/write.h"

namespace interlock::idempotency {

constexpr MadeColumn kKeyColumns[] = {
    {"scope", TEXTOID, true},
    {"key", TEXTOID, true},
    {"status", TEXTOID, true},
    {"request_hash", BYTEAOID, false},
    {"token", INT8OID, true},
    {"attempt", INT4OID, true},
    {"claimed_at", TIMESTAMPTZOID, true},
    {"deadline", TIMESTAMPTZOID, true},
    {"finished_at", TIMESTAMPTZOID, false},
    {"expires_at", TIMESTAMPTZOID, true},
    {"retryable", BOOLOID, true},
    {"response", JSONBOID, false},
    {"response_omitted", BOOLOID, true},
    {"result_id", TEXTOID, false},
    {"checkpoint", TEXTOID, false},
    {"state", JSONBOID, false},
    {"body", BYTEAOID, false},
    {"ttl", INTERVALOID, false},
    {"stale_after", INTERVALOID, false},
};

const OwnTable kIdempotencyKeys = {"idempotency", kKeyColumns, lengthof(kKeyColumns), 2};

bool is_text(NullableDatum value, const char* expected) {
    if (value.isnull)
        return false;
    const text* bytes = DatumGetTextPP(value.value);
    size_t length = strlen(expected);
    return VARSIZE_ANY_EXHDR(bytes) == length && memcmp(VARDATA_ANY(bytes), expected, length) == 0;
}

void set_value(RowWrite* write, AttrNumber column, NullableDatum value) {
    write->set(column, write->terms.stored_value(column, value));
}

} // namespace interlock::idempotency
