// define_idempotency_scope: how long the keys of a scope live and how they end. Also
// idempotency_key: one key out of several parts.

#include "idempotency/idempotency.h"
#include "server/arguments.h"
#include "server/key_parts.h"
#include "table/configuration_audit.h"
#include "table/restricted.h"

namespace interlock::idempotency {

static const char* check_model(const char* model) {
    if (strcmp(model, "api") != 0 && strcmp(model, "job") != 0)
        refuse_value("model", model, "Use 'api' or 'job'.");
    return model;
}

constexpr const char* kWriteScope =
    "INSERT INTO interlock.idempotency_scope (scope, model, ttl, stale_after, replay_failures, "
    "max_response_bytes, max_attempts) VALUES ($1, $2, $3, $4, $5, $6, $7) "
    "ON CONFLICT (scope) DO UPDATE SET model = excluded.model, ttl = excluded.ttl, "
    "stale_after = excluded.stale_after, replay_failures = excluded.replay_failures, "
    "max_response_bytes = excluded.max_response_bytes, max_attempts = excluded.max_attempts";

// Null: it is not defined. All roles may read the table.
static Jsonb* stored_scope(Datum scope) {
    Jsonb* stored = nullptr;
    MemoryContext context = CurrentMemoryContext;
    with_spi([&] {
        Oid type = TEXTOID;
        SPI_execute_with_args(
            "SELECT pg_catalog.to_jsonb(s) OPERATOR(pg_catalog.-) "
            "'scope'::pg_catalog.text FROM interlock.idempotency_scope s "
            "WHERE s.scope OPERATOR(pg_catalog.=) $1",
            1, &type, &scope, nullptr, false, 1);
        if (SPI_processed == 0)
            return;
        bool is_null;
        Datum value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null);
        stored = in_context(context, [&] { return DatumGetJsonbPCopy(value); });
    });
    return stored;
}

static Datum join_parts(const KeyParts& parts) {
    StringInfoData key;
    initStringInfo(&key);
    for (const char* part : parts) {
        if (part != parts.texts[0])
            appendStringInfoChar(&key, ':');
        // The bytes of : and \ are part of no other character in a server encoding.
        for (const char* at = part; *at != '\0'; at++) {
            if (*at == ':' || *at == '\\')
                appendStringInfoChar(&key, '\\');
            appendStringInfoChar(&key, *at);
        }
    }
    return PointerGetDatum(cstring_to_text_with_len(key.data, key.len));
}

extern "C" {
PG_FUNCTION_INFO_V1(define_idempotency_scope);
PG_FUNCTION_INFO_V1(idempotency_key);
PG_FUNCTION_INFO_V1(idempotency_key_any);
PG_FUNCTION_INFO_V1(idempotency_key_text_and_any);

// define_idempotency_scope(scope, model, ttl, stale_after, replay_failures, max_response_bytes,
// max_attempts)
Datum define_idempotency_scope(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Datum scope = scope_argument(arguments, 0);
    check_model(arguments.string(1, "model"));
    Interval* ttl = duration_to_store(arguments.interval(2, "ttl"), "ttl");
    Interval* stale_after = duration_to_store(arguments.interval(3, "stale_after"), "stale_after");
    (void)arguments.boolean(4, "replay_failures");
    (void)not_negative(DatumGetInt32(arguments.required(5, "max_response_bytes")),
                       "max_response_bytes");
    if (!arguments.is_null(6))
        (void)above_zero(DatumGetInt32(arguments.value(6)), "max_attempts",
                         "Null allows any number.");
    Oid types[7] = {TEXTOID, TEXTOID, INTERVALOID, INTERVALOID, BOOLOID, INT4OID, INT4OID};
    NullableDatum most_attempts = arguments.optional(6);
    Datum values[7] = {scope,
                       arguments.value(1),
                       IntervalPGetDatum(ttl),
                       IntervalPGetDatum(stale_after),
                       arguments.value(4),
                       arguments.value(5),
                       most_attempts.value};
    bool nulls[7] = {false, false, false, false, false, false, most_attempts.isnull};
    Jsonb* before = stored_scope(scope);
    write_own_table("idempotency_scope", TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE, kWriteScope, 7,
                    types, values, nulls);
    record_change(arguments, {.kind = "configuration",
                              .name = TextDatumGetCString(scope),
                              .before = before,
                              .after = stored_scope(scope)});
    PG_RETURN_VOID();
}

Datum idempotency_key(PG_FUNCTION_ARGS) { return join_parts(key_parts(fcinfo)); }
Datum idempotency_key_any(PG_FUNCTION_ARGS) { return join_parts(any_key_parts(fcinfo)); }
Datum idempotency_key_text_and_any(PG_FUNCTION_ARGS) {
    return join_parts(text_and_any_key_parts(fcinfo));
}
}

} // namespace interlock::idempotency
