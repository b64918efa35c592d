#include "idempotency/cached_rows.h"

#include "execution/eligible.h"

namespace interlock::idempotency {

// The top transaction of ours that changed such a table last.
static TransactionId changing = InvalidTransactionId;

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

constexpr int kMostRows = 1000; // about 100 bytes each
constexpr int64 kUncertain = USECS_PER_SEC;

static const CachedRows* cached_rows_of(const TableInfo* info) {
    return facet_of<const CachedRows>(info, cached_rows_facet);
}

static bool is_changing() {
    return TransactionIdIsValid(changing) && changing == GetTopTransactionIdIfAny();
}

// --- Whether every change is announced ----------------------------------------------------------

static bool announces(const Trigger* trigger) {
    constexpr int16 kType = TRIGGER_TYPE_ROW | TRIGGER_TYPE_BEFORE | TRIGGER_TYPE_INSERT |
                            TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE;
    return trigger->tgtype == kType && trigger->tgqual == nullptr && trigger->tgnattr == 0 &&
           trigger_calls(trigger, "idempotency_scope_trigger");
}

// When rows that are read now are too old: DT_NOBEGIN at once.
static TimestampTz good_until(Relation rel) {
    TimestampTz until = DT_NOBEGIN;
    const TriggerDesc* triggers = triggers_of(rel);
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++) {
        const Trigger* trigger = &triggers->triggers[i];
        if (!announces(trigger))
            continue;
        if (trigger->tgenabled == TRIGGER_FIRES_ALWAYS)
            return DT_NOEND;
        if (trigger->tgenabled == TRIGGER_FIRES_ON_ORIGIN && trigger_fires(trigger->tgenabled))
            until = GetCurrentTimestamp() + kUncertain;
    }
    return until;
}

static bool is_fresh(const CachedRows& cached) {
    if (cached.until == DT_NOEND)
        return true;
    return trigger_fires(TRIGGER_FIRES_ON_ORIGIN) && GetCurrentTimestamp() < cached.until;
}

// --- Reading all rows ---------------------------------------------------------------------------

static int compare_rows(const void* left, const void* right) {
    return compare_names(static_cast<const CachedRow*>(left)->name,
                         static_cast<const CachedRow*>(right)->name);
}

static CachedRow* add_row(CachedRows* cached) {
    if (cached->count == cached->room) {
        cached->room *= 2;
        cached->rows = static_cast<char*>(repalloc(cached->rows, cached->row_size * cached->room));
    }
    return const_cast<CachedRow*>(cached->row(cached->count++));
}

static void cache_row(CachedRows* cached, const CachedTable& table, TupleTableSlot* slot) {
    RowValues values = values_in(slot);
    cached->are_too_many = cached->count == kMostRows;
    if (cached->are_too_many)
        return;
    MemoryContext caller = MemoryContextSwitchTo(cached->memory);
    CachedRow* row = add_row(cached);
    row->name = DatumGetTextPCopy(values[1].value);
    table.read(values, row);
    MemoryContextSwitchTo(caller);
}

static void cache_rows(CachedRows* cached, const CachedTable& table, Relation rel) {
    CommandCounterIncrement();
    PushActiveSnapshot(GetLatestSnapshot());
    TupleTableSlot* slot = table_slot_create(rel, nullptr);
    TableScanDesc scan = begin_table_scan(rel, GetActiveSnapshot());
    while (!cached->are_too_many && table_scan_getnextslot(scan, ForwardScanDirection, slot))
        cache_row(cached, table, slot);
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    PopActiveSnapshot();
    qsort(cached->rows, cached->count, cached->row_size, compare_rows);
}

// These rows are newer than the metadata. If the table has changed since that was loaded, neither
// is used again.
static void keep(const CachedTable& table, Relation rel, const TableInfo* info, TimestampTz until) {
    MemoryContext memory =
        AllocSetContextCreate(CurrentMemoryContext, "interlock rows", ALLOCSET_SMALL_SIZES);
    auto* cached = static_cast<CachedRows*>(MemoryContextAllocZero(memory, sizeof(CachedRows)));
    cached->memory = memory;
    cached->until = until;
    cached->row_size = table.row_size;
    cached->room = 8;
    cached->rows = static_cast<char*>(MemoryContextAlloc(memory, cached->row_size * cached->room));
    cache_rows(cached, table, rel);
    MemoryContextSetParent(memory, info->memory);
    if (const CachedRows* before = cached_rows_of(info); before != nullptr)
        MemoryContextDelete(before->memory);
    info->facets[cached_rows_facet] = cached;
}

static const CachedRows* load_rows(const CachedTable& table) {
    const CachedRows* cached = nullptr;
    Relation rel = try_open(table.table, AccessShareLock);
    if (rel == nullptr)
        return nullptr;
    const TableInfo* info = table_info(rel);
    TimestampTz until = good_until(rel);
    if (until != DT_NOBEGIN && is_unmodified(table.table, info) && table_is_eligible(rel, info)) {
        keep(table, rel, info, until);
        cached = cached_rows_of(info);
    }
    close_table(rel);
    return cached;
}

int compare_names(const text* left, const text* right) {
    int left_length = static_cast<int>(VARSIZE_ANY_EXHDR(left));
    int right_length = static_cast<int>(VARSIZE_ANY_EXHDR(right));
    if (left_length != right_length)
        return left_length - right_length;
    return memcmp(VARDATA_ANY(left), VARDATA_ANY(right), left_length);
}

const CachedRows* cached_rows(const CachedTable& table) {
    if (!session_is_eligible() || is_changing())
        return nullptr;
    AcceptInvalidationMessages();
    const TableInfo* info = cached_table_info(own_table(table.table.name));
    const CachedRows* cached = info != nullptr ? cached_rows_of(info) : nullptr;
    if (cached == nullptr || !is_fresh(*cached))
        cached = load_rows(table);
    return cached != nullptr && !cached->are_too_many ? cached : nullptr;
}

int first_cached(const CachedRows& cached, const text* name) {
    int first = 0;
    int end = cached.count;
    while (first < end) {
        int middle = (first + end) / 2;
        if (compare_names(cached.row(middle)->name, name) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

} // namespace interlock::idempotency
