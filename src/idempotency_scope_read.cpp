// What the scopes say, kept for the session: each claim asks for it, and it hardly ever changes.
//
// It is kept with what is known of interlock.idempotency_scope (RelationFacts), and goes when the
// server says that the table has changed. That is what a trigger of ours lets it say before each
// change of a row, for everybody when the change is committed and before that is answered; TRUNCATE
// and ALTER TABLE let it say so themselves. A transaction that changes scopes keeps nothing, so
// that there is nothing to take back when some of it is rolled back.

#include "idempotency_direct.h"

using namespace interlock;

namespace interlock {

struct KeptScope {
    const text* name;
    IdempotencyScope scope;
};

struct KeptScopes {
    MemoryContext memory;
    Oid schema;
    bool are_too_many;
    int count;
    int room;
    KeptScope* rows; // by compare_names
};

} // namespace interlock

namespace {

// The top transaction of ours that changed scopes last.
TransactionId changing = InvalidTransactionId;

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(idempotency_scope_trigger);

Datum idempotency_scope_trigger(PG_FUNCTION_ARGS) {
    TriggerData* trigger = row_trigger(fcinfo, "idempotency_scope_trigger");
    changing = GetTopTransactionId();
    CacheInvalidateRelcache(trigger->tg_relation);
    return PointerGetDatum(TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple
                                                                      : trigger->tg_trigtuple);
}
}

namespace {

enum ScopeColumn : AttrNumber {
    kScopeName = 1,
    kModel,
    kTtl,
    kStaleAfter,
    kReplayFailures,
    kMaxResponseBytes,
};

constexpr MadeColumn kScopeColumns[] = {
    {"scope", TEXTOID, true},           {"model", TEXTOID, true},
    {"ttl", INTERVALOID, true},         {"stale_after", INTERVALOID, true},
    {"replay_failures", BOOLOID, true}, {"max_response_bytes", INT4OID, true},
};
const OwnTable kScopes = {"idempotency_scope", kScopeColumns, lengthof(kScopeColumns), 1};

constexpr int kMostScopes = 1000; // about 100 bytes each
constexpr IdempotencyScope kDefaults = {false, false, USECS_PER_DAY, USECS_PER_MINUTE, 65536};

// --- What a row says ---------------------------------------------------------------------------

int64 microseconds(Datum interval) {
    const Interval* span = DatumGetIntervalP(interval);
    return (span->month * INT64CONST(30) + span->day) * USECS_PER_DAY + span->time;
}

// Nulls, which the table's owner may have allowed, are the default.
IdempotencyScope scope_of(const RowValues& row) {
    IdempotencyScope scope = kDefaults;
    scope.is_job = is_text(row[kModel], "job");
    if (!row[kReplayFailures].isnull)
        scope.replay_failures = DatumGetBool(row[kReplayFailures].value);
    if (!row[kTtl].isnull)
        scope.ttl = microseconds(row[kTtl].value);
    if (!row[kStaleAfter].isnull)
        scope.stale_after = microseconds(row[kStaleAfter].value);
    if (!row[kMaxResponseBytes].isnull)
        scope.max_response_bytes = DatumGetInt32(row[kMaxResponseBytes].value);
    return scope;
}

IdempotencyScope read_by_plan(Datum name) {
    IdempotencyScope scope = kDefaults;
    with_spi([&] {
        PlanShape shape = {own_table(kScopes.name), PlanKind::kIdempotencyScope};
        SPIPlanPtr plan = plan_of(shape, [](Statement* statement) {
            statement->add(
                "SELECT scope, model::pg_catalog.text, ttl, stale_after, replay_failures, "
                "max_response_bytes FROM interlock.idempotency_scope "
                "WHERE scope OPERATOR(pg_catalog.=) $%d",
                statement->parameter(TEXTOID));
        });
        Parameters parameters(1);
        parameters.add(name);
        if (run_plan(plan, parameters) == 0)
            return;
        scope = scope_of(values_of_row(SPI_tuptable->tupdesc, SPI_tuptable->vals[0]));
    });
    return scope;
}

// --- Keeping all rows --------------------------------------------------------------------------

bool is_changing_scopes() {
    return TransactionIdIsValid(changing) && changing == GetTopTransactionIdIfAny();
}

// Whether every change of a row is told of.
bool tells_of_changes(Relation rel) {
    constexpr int16 kType = TRIGGER_TYPE_ROW | TRIGGER_TYPE_BEFORE | TRIGGER_TYPE_INSERT |
                            TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE;
    // A copy: the catalogs are read, and an invalidation on the way would free the original.
    const TriggerDesc* triggers = CopyTriggerDesc(rel->trigdesc);
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++) {
        const Trigger* trigger = &triggers->triggers[i];
        if (trigger->tgtype == kType && trigger->tgenabled == TRIGGER_FIRES_ALWAYS &&
            trigger->tgqual == nullptr && trigger->tgnattr == 0 &&
            trigger_calls(trigger, "idempotency_scope_trigger"))
            return true;
    }
    return false;
}

int compare_names(const text* left, const text* right) {
    int left_length = static_cast<int>(VARSIZE_ANY_EXHDR(left));
    int right_length = static_cast<int>(VARSIZE_ANY_EXHDR(right));
    if (left_length != right_length)
        return left_length - right_length;
    return memcmp(VARDATA_ANY(left), VARDATA_ANY(right), left_length);
}

int compare_rows(const void* left, const void* right) {
    return compare_names(static_cast<const KeptScope*>(left)->name,
                         static_cast<const KeptScope*>(right)->name);
}

void make_room(KeptScopes* kept) {
    if (kept->count < kept->room)
        return;
    kept->room *= 2;
    kept->rows = static_cast<KeptScope*>(repalloc(kept->rows, sizeof(KeptScope) * kept->room));
}

void keep_row(KeptScopes* kept, const RowValues& row) {
    kept->are_too_many = kept->count == kMostScopes;
    if (kept->are_too_many)
        return;
    make_room(kept);
    const text* name = DatumGetTextPP(row[kScopeName].value);
    KeptScope* last = &kept->rows[kept->count++];
    last->name = in_context(kept->memory, [&] { return DatumGetTextPCopy(PointerGetDatum(name)); });
    last->scope = scope_of(row);
}

void keep_rows(KeptScopes* kept, Relation rel) {
    CommandCounterIncrement();
    PushActiveSnapshot(GetTransactionSnapshot());
    TupleTableSlot* slot = table_slot_create(rel, nullptr);
    TableScanDesc scan = table_beginscan(rel, GetActiveSnapshot(), 0, nullptr);
    while (!kept->are_too_many && table_scan_getnextslot(scan, ForwardScanDirection, slot))
        keep_row(kept, values_in(slot));
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    PopActiveSnapshot();
    qsort(kept->rows, kept->count, sizeof(KeptScope), compare_rows);
}

// What is read here is newer than the facts. If the table has changed since they were made, they
// are not used again, nor is this.
const KeptScopes* keep_scopes(Relation rel, const RelationFacts* facts) {
    MemoryContext memory =
        AllocSetContextCreate(CurrentMemoryContext, "interlock scopes", ALLOCSET_SMALL_SIZES);
    auto* kept = static_cast<KeptScopes*>(MemoryContextAllocZero(memory, sizeof(KeptScopes)));
    kept->memory = memory;
    kept->schema = RelationGetNamespace(rel);
    kept->room = 8;
    kept->rows =
        static_cast<KeptScope*>(MemoryContextAlloc(memory, sizeof(KeptScope) * kept->room));
    keep_rows(kept, rel);
    MemoryContextSetParent(memory, facts->memory);
    facts->scopes = kept;
    return kept;
}

const KeptScopes* load_scopes() {
    const KeptScopes* kept = nullptr;
    (void)with_own_table(kScopes, AccessShareLock, [&](Relation rel, const RelationFacts* facts) {
        if (may_act_directly({rel, facts, nullptr}, ACL_SELECT) && !rel->rd_rel->relrowsecurity &&
            tells_of_changes(rel))
            kept = keep_scopes(rel, facts);
        return DirectOutcome::kDone;
    });
    return kept;
}

const KeptScopes* kept_scopes() {
    const RelationFacts* facts = kept_facts(own_table(kScopes.name));
    if (facts == nullptr || facts->scopes == nullptr)
        return load_scopes();
    return has_plain_rights(facts, facts->scopes->schema, ACL_SELECT) ? facts->scopes : nullptr;
}

// Null when a statement has to look.
const KeptScopes* all_scopes() {
    if (!is_plain_transaction() || is_changing_scopes())
        return nullptr;
    AcceptInvalidationMessages();
    const KeptScopes* kept = kept_scopes();
    return kept != nullptr && !kept->are_too_many ? kept : nullptr;
}

} // namespace

namespace interlock {

IdempotencyScope read_scope(Datum name) {
    const KeptScopes* kept = all_scopes();
    if (kept == nullptr)
        return read_by_plan(name);
    KeptScope wanted = {DatumGetTextPP(name), kDefaults};
    const void* found = bsearch(&wanted, kept->rows, kept->count, sizeof(KeptScope), compare_rows);
    return found != nullptr ? static_cast<const KeptScope*>(found)->scope : kDefaults;
}

} // namespace interlock
