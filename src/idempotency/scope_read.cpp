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
};

} // namespace

constexpr const char* kMaxAttempts = "max_attempts"; // since 0.10.0

constexpr MadeColumn kScopeColumns[] = {
    {"scope", TEXTOID, true},           {"model", TEXTOID, true},
    {"ttl", INTERVALOID, true},         {"stale_after", INTERVALOID, true},
    {"replay_failures", BOOLOID, true}, {"max_response_bytes", INT4OID, true},
};

constexpr IdempotencyScope kDefaults = {false, false, USECS_PER_DAY, USECS_PER_MINUTE, 65536, 0};

namespace {

struct CachedScope {
    CachedRow row;
    IdempotencyScope scope;
};

} // namespace

// It follows the columns that an owner had added before the upgrade.
static int32 max_attempts_of(TupleDesc columns, const RowValues& row) {
    for (int i = kMaxResponseBytes; i < columns->natts; i++) {
        Form_pg_attribute column = TupleDescAttr(columns, i);
        if (strcmp(NameStr(column->attname), kMaxAttempts) == 0 && column->atttypid == INT4OID)
            return row.nulls[i] ? 0 : Max(0, DatumGetInt32(row.values[i]));
    }
    return 0;
}

// Nulls, which the table's owner may have allowed, are the default.
static IdempotencyScope scope_of(TupleDesc columns, const RowValues& row) {
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
    scope.max_attempts = max_attempts_of(columns, row);
    return scope;
}

static void read_cached(TupleDesc columns, const RowValues& values, CachedRow* row) {
    reinterpret_cast<CachedScope*>(row)->scope = scope_of(columns, values);
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
            TablePlan plan = plan_of(shape, [table](Statement* statement) {
                bool is_first = get_attnum(table, kMaxAttempts) == InvalidAttrNumber;
                statement->add(
                    "SELECT scope, model::pg_catalog.text, ttl, stale_after, replay_failures, "
                    "max_response_bytes%s%s FROM interlock.idempotency_scope "
                    "WHERE scope OPERATOR(pg_catalog.=) $%d",
                    is_first ? "" : ", ", is_first ? "" : kMaxAttempts,
                    statement->parameter(TEXTOID));
            });
            Parameters parameters(1);
            parameters.add(name);
            if (run_plan(plan, parameters) > 0)
                scope = scope_of(SPI_tuptable->tupdesc,
                                 values_of_row(SPI_tuptable->tupdesc, SPI_tuptable->vals[0]));
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
