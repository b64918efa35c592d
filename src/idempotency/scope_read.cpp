// Reading the settings of a scope, with the rights of the table's owner: they are the same for all
// callers.

#include "execution/eligible.h"
#include "idempotency/cached_rows.h"
#include "idempotency/row.h"
#include "idempotency/table.h"
#include "server/scope.h"

namespace interlock::idempotency {

namespace {

enum ScopeColumn : AttrNumber {
    kScopeName = 1,
    kModel,
    kTtl,
    kStaleAfter,
    kReplayFailures,
    kMaxResponseBytes,
    kMaxAttempts,
};

} // namespace

constexpr MadeColumn kScopeColumns[] = {
    {"scope", TEXTOID, true},           {"model", TEXTOID, true},
    {"ttl", INTERVALOID, true},         {"stale_after", INTERVALOID, true},
    {"replay_failures", BOOLOID, true}, {"max_response_bytes", INT4OID, true},
    {"max_attempts", INT4OID, false},
};

constexpr IdempotencyScope kDefaults = {false, false, USECS_PER_DAY, USECS_PER_MINUTE, 65536, 0};

namespace {

struct CachedScope {
    CachedRow row;
    IdempotencyScope scope;
};

} // namespace

// Nulls, which the table's owner may have allowed, are the default.
static IdempotencyScope scope_of(const RowValues& row) {
    IdempotencyScope scope = kDefaults;
    scope.is_job = is_text(row[kModel], "job");
    if (!row[kReplayFailures].isnull)
        scope.replay_failures = DatumGetBool(row[kReplayFailures].value);
    if (!row[kTtl].isnull)
        scope.ttl = microseconds(DatumGetIntervalP(row[kTtl].value));
    if (!row[kStaleAfter].isnull)
        scope.stale_after = microseconds(DatumGetIntervalP(row[kStaleAfter].value));
    if (!row[kMaxResponseBytes].isnull)
        scope.max_response_bytes = Max(0, DatumGetInt32(row[kMaxResponseBytes].value));
    if (!row[kMaxAttempts].isnull)
        scope.max_attempts = Max(0, DatumGetInt32(row[kMaxAttempts].value));
    return scope;
}

static void read_cached(const RowValues& values, CachedRow* row) {
    reinterpret_cast<CachedScope*>(row)->scope = scope_of(values);
}

const CachedTable kScopes = {{"idempotency_scope", kScopeColumns, lengthof(kScopeColumns), 1},
                             sizeof(CachedScope),
                             read_cached};

static IdempotencyScope read_by_plan(Datum name) {
    IdempotencyScope scope = kDefaults;
    Oid table = own_table(kScopes.table.name);
    as_user(owner_of_table(table), SECURITY_LOCAL_USERID_CHANGE | SECURITY_NOFORCE_RLS, [&] {
        with_spi([&] {
            PlanShape shape = {table, PlanKind("idempotency_scope")};
            TablePlan plan = plan_of(shape, [](Statement* statement) {
                statement->add(
                    "SELECT scope, model::pg_catalog.text, ttl, stale_after, replay_failures, "
                    "max_response_bytes, max_attempts FROM interlock.idempotency_scope "
                    "WHERE scope OPERATOR(pg_catalog.=) $%d",
                    statement->parameter(TEXTOID));
            });
            Parameters parameters(1);
            parameters.add(name);
            if (run_plan(plan, parameters) > 0)
                scope = scope_of(values_of_row(SPI_tuptable->tupdesc, SPI_tuptable->vals[0]));
        });
    });
    return scope;
}

int64 microseconds(const Interval* span) {
    constexpr double kMost = 3653.0 * USECS_PER_DAY;
    double days = span->month * 30.0 + span->day;
    double duration = days * USECS_PER_DAY + static_cast<double>(span->time);
    return static_cast<int64>(Max(1.0, Min(duration, kMost)));
}

IdempotencyScope with_own_times(IdempotencyScope scope, const Interval* ttl,
                                const Interval* stale_after) {
    if (ttl != nullptr)
        scope.ttl = microseconds(ttl);
    if (stale_after != nullptr)
        scope.stale_after = microseconds(stale_after);
    return scope;
}

IdempotencyScope read_scope(Datum name) {
    const CachedRows* cached = transaction_is_eligible() ? cached_rows(kScopes) : nullptr;
    if (cached == nullptr)
        return read_by_plan(name);
    IdempotencyScope scope = kDefaults;
    (void)any_cached<CachedScope>(*cached, DatumGetTextPP(name), [&](const CachedScope& found) {
        scope = found.scope;
        return true;
    });
    return scope;
}

} // namespace interlock::idempotency
