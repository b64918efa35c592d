#include "idempotency/kept.h"

#include "execution/eligible.h"

using namespace interlock;

namespace {

// The top transaction of ours that changed such a table last.
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

constexpr int kMostRows = 1000; // about 100 bytes each
constexpr int64 kUncertain = USECS_PER_SEC;

const KeptRows* kept_of(const RelationFacts* facts) {
    return part_of<const KeptRows>(facts, kept_rows_part);
}

bool is_changing() {
    return TransactionIdIsValid(changing) && changing == GetTopTransactionIdIfAny();
}

// --- Whether every change is announced ----------------------------------------------------------

bool announces(const Trigger* trigger) {
    constexpr int16 kType = TRIGGER_TYPE_ROW | TRIGGER_TYPE_BEFORE | TRIGGER_TYPE_INSERT |
                            TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE;
    return trigger->tgtype == kType && trigger->tgqual == nullptr && trigger->tgnattr == 0 &&
           trigger_calls(trigger, "idempotency_scope_trigger");
}

// When rows that are read now are too old: DT_NOBEGIN at once.
TimestampTz good_until(Relation rel) {
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

bool is_fresh(const KeptRows& kept) {
    if (kept.until == DT_NOEND)
        return true;
    return trigger_fires(TRIGGER_FIRES_ON_ORIGIN) && GetCurrentTimestamp() < kept.until;
}

// --- Reading all rows ---------------------------------------------------------------------------

int compare_rows(const void* left, const void* right) {
    return compare_names(static_cast<const KeptRow*>(left)->name,
                         static_cast<const KeptRow*>(right)->name);
}

KeptRow* add_row(KeptRows* kept) {
    if (kept->count == kept->room) {
        kept->room *= 2;
        kept->rows = static_cast<char*>(repalloc(kept->rows, kept->row_size * kept->room));
    }
    return const_cast<KeptRow*>(kept->row(kept->count++));
}

void keep_row(KeptRows* kept, const KeptTable& table, const RowValues& values) {
    kept->are_too_many = kept->count == kMostRows;
    if (kept->are_too_many)
        return;
    MemoryContext caller = MemoryContextSwitchTo(kept->memory);
    KeptRow* row = add_row(kept);
    row->name = DatumGetTextPCopy(values[1].value);
    table.read(values, row);
    MemoryContextSwitchTo(caller);
}

void keep_rows(KeptRows* kept, const KeptTable& table, Relation rel) {
    CommandCounterIncrement();
    PushActiveSnapshot(GetLatestSnapshot());
    TupleTableSlot* slot = table_slot_create(rel, nullptr);
    TableScanDesc scan = table_beginscan(rel, GetActiveSnapshot(), 0, nullptr);
    while (!kept->are_too_many && table_scan_getnextslot(scan, ForwardScanDirection, slot))
        keep_row(kept, table, values_in(slot));
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    PopActiveSnapshot();
    qsort(kept->rows, kept->count, kept->row_size, compare_rows);
}

// What is read here is newer than the facts. If the table has changed since they were made, they
// are not used again, nor is this.
void keep(const KeptTable& table, Relation rel, const RelationFacts* facts, TimestampTz until) {
    MemoryContext memory =
        AllocSetContextCreate(CurrentMemoryContext, "interlock rows", ALLOCSET_SMALL_SIZES);
    auto* kept = static_cast<KeptRows*>(MemoryContextAllocZero(memory, sizeof(KeptRows)));
    kept->memory = memory;
    kept->until = until;
    kept->row_size = table.row_size;
    kept->room = 8;
    kept->rows = static_cast<char*>(MemoryContextAlloc(memory, kept->row_size * kept->room));
    keep_rows(kept, table, rel);
    MemoryContextSetParent(memory, facts->memory);
    if (const KeptRows* before = kept_of(facts); before != nullptr)
        MemoryContextDelete(before->memory);
    facts->parts[kept_rows_part] = kept;
}

const KeptRows* load_rows(const KeptTable& table) {
    const KeptRows* kept = nullptr;
    Relation rel = try_open(table.table, AccessShareLock);
    if (rel == nullptr)
        return nullptr;
    const RelationFacts* facts = facts_of(rel);
    TimestampTz until = good_until(rel);
    if (until != DT_NOBEGIN && is_as_made(table.table, facts) && table_is_eligible(rel)) {
        keep(table, rel, facts, until);
        kept = kept_of(facts);
    }
    close_table(rel);
    return kept;
}

} // namespace

namespace interlock {

int compare_names(const text* left, const text* right) {
    int left_length = static_cast<int>(VARSIZE_ANY_EXHDR(left));
    int right_length = static_cast<int>(VARSIZE_ANY_EXHDR(right));
    if (left_length != right_length)
        return left_length - right_length;
    return memcmp(VARDATA_ANY(left), VARDATA_ANY(right), left_length);
}

const KeptRows* kept_rows(const KeptTable& table) {
    if (!session_is_eligible() || is_changing())
        return nullptr;
    AcceptInvalidationMessages();
    const RelationFacts* facts = kept_facts(own_table(table.table.name));
    const KeptRows* kept = facts != nullptr ? kept_of(facts) : nullptr;
    if (kept == nullptr || !is_fresh(*kept))
        kept = load_rows(table);
    return kept != nullptr && !kept->are_too_many ? kept : nullptr;
}

int first_kept(const KeptRows& kept, const text* name) {
    int first = 0;
    int end = kept.count;
    while (first < end) {
        int middle = (first + end) / 2;
        if (compare_names(kept.row(middle)->name, name) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

} // namespace interlock
