#include "idempotency/storable.h"

#include "server/arguments.h"

namespace interlock {

namespace {

constexpr int kMostLevels = 1000;
constexpr Size kMostBytes = 1024 * 1024;

int levels_of(Jsonb* json) {
    int level = 0;
    int most = 0;
    JsonbIterator* iterator = JsonbIteratorInit(&json->root);
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE;) {
        CHECK_FOR_INTERRUPTS();
        if (token == WJB_BEGIN_ARRAY || token == WJB_BEGIN_OBJECT) {
            level++;
            most = Max(most, level);
        } else if (token == WJB_END_ARRAY || token == WJB_END_OBJECT) {
            level--;
        }
    }
    return most;
}

} // namespace

void require_shallow(const char* name, NullableDatum json) {
    if (!json.isnull && levels_of(DatumGetJsonbP(json.value)) > kMostLevels)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("argument \"%s\" is nested too deeply", name),
                        errhint("It may have %d levels.", kMostLevels)));
}

void require_small(const char* name, NullableDatum json) {
    if (!json.isnull && toast_raw_datum_size(json.value) > kMostBytes)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("argument \"%s\" is too large", name),
                        errhint("It may have 1 MB. Store a reference to what is larger.")));
    require_shallow(name, json);
}

void require_short(const char* name, NullableDatum text) {
    constexpr size_t kMost = 1024;
    if (!text.isnull && toast_raw_datum_size(text.value) - VARHDRSZ > kMost)
        refuse_long(name, kMost);
}

} // namespace interlock
