#include "escrow/journal.h"

#include "escrow/reservation.h"
#include "escrow/scan.h"
#include "server/error.h"
#include "server/sequence.h"
#include "table/subscription.h"

namespace interlock::escrow {

constexpr const char* kCounterTable = "escrow_counter";
constexpr const char* kPartTable = "escrow_part";
constexpr const char* kNumbers = "escrow_part_number"; // a sequence

namespace {

// Columns of interlock_internal.escrow_counter and escrow_part, from 1.
enum CounterColumn { kId = 1, kRel, kColumnName, kKey, kCounterColumns = kKey };
enum PartColumn { kCounter = 1, kNumber, kAmount, kReserved, kPartColumns = kReserved };

} // namespace

static Snapshot newest_snapshot() {
    return IsolationUsesXactSnapshot() ? GetTransactionSnapshot() : latest_snapshot();
}

template <typename Visit>
static void scan_parts(int64 counter, LOCKMODE mode, Snapshot snapshot, Visit&& visit) {
    ScanKeyData key;
    ScanKeyInit(&key, kCounter, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(counter));
    scan_rows(kPartTable, "escrow_part_counter", mode, snapshot, &key, 1, visit);
}

static int64 amount_of_part(const EscrowColumn& column, Relation rel, HeapTuple tuple) {
    return amount_of_numeric(column, column_of(rel, tuple, kAmount).value);
}

// Null for most parts.
static int64 reserved_by_part(const EscrowColumn& column, Relation rel, HeapTuple tuple) {
    NullableDatum reserved = column_of(rel, tuple, kReserved);
    return reserved.isnull ? 0 : amount_of_numeric(column, reserved.value);
}

// Under REPEATABLE READ and above another transaction may have deleted it since the snapshot.
static void delete_row(Relation rel, HeapTuple tuple) {
    TM_FailureData failure;
    if (delete_tuple(rel, &tuple->t_self, GetCurrentCommandId(true), &failure) != TM_Ok)
        raise_concurrent_update();
}

static void insert_row(Relation rel, Datum* values, bool* nulls) {
    HeapTuple tuple = heap_form_tuple(RelationGetDescr(rel), values, nulls);
    CatalogTupleInsert(rel, tuple);
    heap_freetuple(tuple);
    CommandCounterIncrement();
}

static int64 find_counter(const CounterName& name, Snapshot snapshot) {
    int64 counter = 0;
    ScanKeyData keys[3];
    ScanKeyInit(&keys[0], kRel, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(name.rel));
    ScanKeyInit(&keys[1], kColumnName, BTEqualStrategyNumber, F_NAMEEQ, NameGetDatum(name.column));
    ScanKeyInit(&keys[2], kKey, BTEqualStrategyNumber, F_TEXTEQ, PointerGetDatum(name.key));
    scan_rows(kCounterTable, "escrow_counter_name", AccessShareLock, snapshot, keys, 3,
              [&](Relation rel, HeapTuple tuple) {
                  counter = DatumGetInt64(column_of(rel, tuple, kId).value);
                  return false;
              });
    return counter;
}

int64 find_counter(const CounterName& name) {
    int64 counter = 0;
    with_snapshot(latest_snapshot(),
                  [&](Snapshot snapshot) { counter = find_counter(name, snapshot); });
    return counter;
}

int64 counter_in_snapshot(const CounterName& name) {
    return find_counter(name, GetActiveSnapshot());
}

Oid counter_table() { return internal_table(kCounterTable); }

bool read_name(Relation counters, HeapTuple row, CounterName* name) {
    NullableDatum rel = column_of(counters, row, kRel);
    NullableDatum column = column_of(counters, row, kColumnName);
    NullableDatum key = column_of(counters, row, kKey);
    if (rel.isnull || column.isnull || key.isnull)
        return false;
    *name = {DatumGetObjectId(rel.value), DatumGetName(column.value), DatumGetTextPP(key.value)};
    return true;
}

// The text may have three times the bytes in the encoding of another database, and be less
// compressed there: an entry of the index has at most 2,700.
static void check_length(const CounterName& name) {
    constexpr size_t kMost = 800;
    if (VARSIZE_ANY_EXHDR(name.key) > kMost)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("a key of table \"%s\" is too long for an escrow counter",
                               get_rel_name(name.rel)),
                        errhint("It may have %zu bytes.", kMost)));
}

int64 create_counter(const CounterName& name) {
    check_length(name);
    if (is_subscribed(name.rel))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("a subscription writes table \"%s\", and its escrow counters",
                               get_rel_name(name.rel)),
                        errhint("Change them on the publisher, or drop the subscription.")));
    int64 counter = is_subscribed(counter_table())
                        ? number_apart()
                        : nextval_internal(internal_table("escrow_counter_id"), false);
    Datum values[kCounterColumns] = {Int64GetDatum(counter), ObjectIdGetDatum(name.rel),
                                     NameGetDatum(name.column), PointerGetDatum(name.key)};
    bool nulls[kCounterColumns] = {};
    Relation rel = table_open(counter_table(), RowExclusiveLock);
    insert_row(rel, values, nulls);
    table_close(rel, NoLock);
    return counter;
}

bool read_counter(int64 counter, Oid* rel, NameData* column, text** key_text) {
    bool found = false;
    ScanKeyData key;
    ScanKeyInit(&key, kId, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(counter));
    with_snapshot(latest_snapshot(), [&](Snapshot snapshot) {
        scan_rows(kCounterTable, "escrow_counter_pkey", AccessShareLock, snapshot, &key, 1,
                  [&](Relation counters, HeapTuple tuple) {
                      *rel = DatumGetObjectId(column_of(counters, tuple, kRel).value);
                      *column = *DatumGetName(column_of(counters, tuple, kColumnName).value);
                      if (key_text != nullptr)
                          *key_text = DatumGetTextPCopy(column_of(counters, tuple, kKey).value);
                      found = true;
                      return false;
                  });
    });
    return found;
}

void delete_counter(int64 counter) {
    ScanKeyData key;
    ScanKeyInit(&key, kId, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(counter));
    with_snapshot(newest_snapshot(), [&](Snapshot snapshot) {
        scan_rows(kCounterTable, "escrow_counter_pkey", RowExclusiveLock, snapshot, &key, 1,
                  [](Relation rel, HeapTuple tuple) {
                      delete_row(rel, tuple);
                      return true;
                  });
    });
    CommandCounterIncrement();
}

// visit(rel, tuple) for each counter of the column, as of now.
template <typename Visit>
static void each_counter(Oid rel, const NameData& column, LOCKMODE mode, Visit&& visit) {
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], kRel, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(rel));
    ScanKeyInit(&keys[1], kColumnName, BTEqualStrategyNumber, F_NAMEEQ, NameGetDatum(&column));
    with_snapshot(latest_snapshot(), [&](Snapshot snapshot) {
        scan_rows(kCounterTable, "escrow_counter_name", mode, snapshot, keys, 2, visit);
    });
}

int64 forget_counters(Oid rel, const NameData& column) {
    int64 count = 0;
    each_counter(rel, column, RowExclusiveLock, [&](Relation counters, HeapTuple tuple) {
        int64 counter = DatumGetInt64(column_of(counters, tuple, kId).value);
        with_snapshot(latest_snapshot(), [&](Snapshot snapshot) {
            scan_parts(counter, RowExclusiveLock, snapshot, [&](Relation parts, HeapTuple part) {
                delete_row(parts, part);
                count++;
                return true;
            });
        });
        if (!has_reservations(counter))
            delete_row(counters, tuple);
        return true;
    });
    CommandCounterIncrement();
    return count;
}

void rename_counters(Oid rel, const NameData& from, const NameData& to) {
    each_counter(rel, from, RowExclusiveLock, [&](Relation counters, HeapTuple tuple) {
        int column = kColumnName;
        Datum name = NameGetDatum(&to);
        bool is_null = false;
        HeapTuple renamed = heap_modify_tuple_by_cols(tuple, RelationGetDescr(counters), 1, &column,
                                                      &name, &is_null);
        CatalogTupleUpdate(counters, &renamed->t_self, renamed);
        return true;
    });
    CommandCounterIncrement();
}

int64* counters_of(Oid rel, const NameData& column, int* count) {
    int room = 0;
    int64* counters = nullptr;
    *count = 0;
    each_counter(rel, column, AccessShareLock, [&](Relation table, HeapTuple tuple) {
        append(&counters, count, &room, DatumGetInt64(column_of(table, tuple, kId).value));
        return true;
    });
    return counters;
}

CounterRows all_counters(Oid rel) {
    CounterRows rows = {};
    int room = 0;
    ScanKeyData key;
    ScanKeyInit(&key, kRel, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(rel));
    auto add = [&](Relation table, HeapTuple tuple) {
        CounterRow row = {DatumGetInt64(column_of(table, tuple, kId).value),
                          DatumGetObjectId(column_of(table, tuple, kRel).value),
                          *DatumGetName(column_of(table, tuple, kColumnName).value),
                          DatumGetTextPCopy(column_of(table, tuple, kKey).value)};
        append(&rows.first, &rows.count, &room, row);
        return true;
    };
    with_snapshot(latest_snapshot(), [&](Snapshot snapshot) {
        scan_rows(kCounterTable, "escrow_counter_name", AccessShareLock, snapshot, &key,
                  OidIsValid(rel) ? 1 : 0, add);
    });
    return rows;
}

static int64 counter_at(IndexScanDesc scan) {
    bool is_null;
    return DatumGetInt64(index_getattr(scan->xs_itup, 1, scan->xs_itupdesc, &is_null));
}

static NextCounter walk_to_part(IndexScanDesc scan, TupleTableSlot* slot) {
    constexpr int kMostDead = 1000000;
    for (int dead = 0; index_getnext_tid(scan, ForwardScanDirection) != nullptr; dead++) {
        if (index_fetch_heap(scan, slot))
            return {counter_at(scan), counter_at(scan) + 1};
        if (dead == kMostDead)
            return {0, counter_at(scan) + 1};
        if (dead % 1024 == 0)
            CHECK_FOR_INTERRUPTS();
    }
    return {0, 0};
}

NextCounter next_counter_with_parts(int64 from) {
    NextCounter next = {};
    ScanKeyData key;
    ScanKeyInit(&key, kCounter, BTGreaterEqualStrategyNumber, F_INT8GE, Int64GetDatum(from));
    Relation rel = table_open(internal_table(kPartTable), AccessShareLock);
    Relation index = index_open(internal_table("escrow_part_counter"), AccessShareLock);
    with_snapshot(latest_snapshot(), [&](Snapshot snapshot) {
        TupleTableSlot* slot = table_slot_create(rel, nullptr);
        IndexScanDesc scan = begin_index_scan(rel, index, snapshot, 1);
        scan->xs_want_itup = true;
        index_rescan(scan, &key, 1, nullptr, 0);
        next = walk_to_part(scan, slot);
        index_endscan(scan);
        ExecDropSingleTupleTableSlot(slot);
    });
    index_close(index, AccessShareLock);
    table_close(rel, AccessShareLock);
    return next;
}

bool has_parts(Oid rel, const EscrowColumn& column) {
    bool found = false;
    each_counter(rel, column.label, AccessShareLock, [&](Relation counters, HeapTuple tuple) {
        UndecidedParts parts =
            read_undecided(column, DatumGetInt64(column_of(counters, tuple, kId).value));
        found = parts.committed_count + parts.count > 0;
        return !found;
    });
    return found;
}

namespace {

// The numbers that the session has taken from the sequence, and not used yet.
struct NumberBlock {
    uint32 hash = 0; // of the sequence's line in pg_sequence
    int64 next = 0;
    int64 end = 0;
};

} // namespace

static NumberBlock block;

// The sequence has been moved, or dropped.
static void forget_block(Datum, CatalogCache, uint32 hash) {
    if (hash == 0 || hash == block.hash)
        block.next = block.end;
}

static void take_block() {
    constexpr int64 kAtOnce = 1024; // the increment of the sequence
    static bool watches = false;
    if (!watches)
        CacheRegisterSyscacheCallback(SEQRELID, forget_block, 0);
    watches = true;
    Oid sequence = internal_table(kNumbers);
    uint32 hash = GetSysCacheHashValue1(SEQRELID, ObjectIdGetDatum(sequence));
    int64 first = nextval_internal(sequence, false);
    block = {hash, first, first + kAtOnce};
}

// In the order in which parts come, nearly: a fold takes the first ones, and what was the value
// once is within the limits.
static int64 number_of_part(Oid parts) {
    if (is_subscribed(parts))
        return number_apart();
    if (block.next == block.end)
        take_block();
    return block.next++;
}

void forget_part_numbers() {
    HeapTuple tuple =
        SearchSysCache1(SEQRELID, ObjectIdGetDatum(get_relname_relid(kNumbers, internal_schema())));
    if (!HeapTupleIsValid(tuple)) // somebody has dropped it
        return;
    Relation catalog = table_open(SequenceRelationId, AccessShareLock);
    CacheInvalidateHeapTuple(catalog, tuple, nullptr);
    table_close(catalog, AccessShareLock);
    ReleaseSysCache(tuple);
}

void insert_part(const EscrowColumn& column, int64 counter, const Delta& delta) {
    Oid parts = internal_table(kPartTable);
    Datum values[kPartColumns] = {Int64GetDatum(counter), Int64GetDatum(number_of_part(parts)),
                                  numeric_of(column, delta.amount)};
    bool nulls[kPartColumns] = {false, false, false, delta.reserved == 0};
    if (delta.reserved != 0)
        values[kReserved - 1] = numeric_of(column, delta.reserved);
    Relation rel = table_open(parts, RowExclusiveLock);
    insert_row(rel, values, nulls);
    table_close(rel, NoLock);
}

// take(rel, tuple) is called for each before it is deleted; may_stop() for some.
template <typename Take, typename MayStop>
static bool delete_parts(int64 counter, Take&& take, MayStop&& may_stop) {
    constexpr int kAtOnce = 256; // between two looks at the clock
    int count = 0;
    bool is_all = true;
    with_snapshot(newest_snapshot(), [&](Snapshot snapshot) {
        scan_parts(counter, RowExclusiveLock, snapshot, [&](Relation rel, HeapTuple tuple) {
            take(rel, tuple);
            delete_row(rel, tuple);
            is_all = ++count % kAtOnce != 0 || !may_stop();
            return is_all;
        });
    });
    CommandCounterIncrement();
    return is_all;
}

bool take_parts(const EscrowColumn& column, int64 counter, AmountSum* sum, TimestampTz stop_at,
                const EscrowLimits* limits) {
    return delete_parts(
        counter,
        [&](Relation rel, HeapTuple tuple) { sum->add(amount_of_part(column, rel, tuple)); },
        [&] {
            return GetCurrentTimestamp() >= stop_at &&
                   (limits == nullptr || sum->is_within(*limits));
        });
}

bool forget_counter(int64 counter, TimestampTz stop_at) {
    if (!delete_parts(
            counter, [](Relation, HeapTuple) {}, [&] { return GetCurrentTimestamp() >= stop_at; }))
        return false;
    delete_counter(counter);
    return true;
}

void add_parts(const EscrowColumn& column, int64 counter, AmountSum* sum) {
    scan_parts(counter, AccessShareLock, GetActiveSnapshot(), [&](Relation rel, HeapTuple tuple) {
        sum->add(amount_of_part(column, rel, tuple));
        return true;
    });
}

// What one snapshot sees is committed, of parts and of reservations alike. A part that it does not
// see is in doubt, also when its transaction has ended meanwhile: its reservation is not in the sum
// of the snapshot.
UndecidedParts read_undecided(const EscrowColumn& column, int64 counter) {
    UndecidedParts parts = {};
    int room = 0;
    SnapshotData dirty;
    InitDirtySnapshot(dirty);
    with_snapshot(latest_snapshot(), [&](Snapshot snapshot) {
        add_reservations(column, counter, snapshot, &parts.reserved);
        scan_parts(counter, AccessShareLock, &dirty, [&](Relation rel, HeapTuple tuple) {
            Delta delta = {amount_of_part(column, rel, tuple),
                           reserved_by_part(column, rel, tuple)};
            TransactionId inserter = HeapTupleHeaderGetXmin(tuple->t_data);
            bool is_own = TransactionIdIsCurrentTransactionId(inserter);
            if (!is_own && !TransactionIdIsValid(dirty.xmin) &&
                !XidInMVCCSnapshot(inserter, snapshot)) {
                parts.committed.add(delta.amount);
                parts.committed_count++;
                return true;
            }
            if (is_own) // the snapshot has what this transaction has done
                parts.reserved.add(-delta.reserved);
            append(&parts.in_doubt, &parts.count, &room, InDoubt{inserter, effects_of(delta)});
            return true;
        });
    });
    return parts;
}

Range range_of(int64 row, const UndecidedParts& parts) {
    AmountSum inf = parts.committed;
    inf.add(row);
    AmountSum sup = inf;
    sup.add(parts.reserved);
    for (int i = 0; i < parts.count; i++) {
        inf.add(-parts.in_doubt[i].effects.inf_on_abort);
        sup.add(parts.in_doubt[i].effects.sup_on_abort);
    }
    return {inf.amount(), sup.amount()};
}

TransactionId deciding_transaction(const EscrowColumn& column, int64 counter, int64 delta) {
    TransactionId found = InvalidTransactionId;
    SnapshotData dirty;
    InitDirtySnapshot(dirty);
    scan_parts(counter, AccessShareLock, &dirty, [&](Relation rel, HeapTuple tuple) {
        if (!TransactionIdIsValid(dirty.xmin))
            return true;
        Effects effects =
            effects_of({amount_of_part(column, rel, tuple), reserved_by_part(column, rel, tuple)});
        bool makes_room = delta < 0 ? effects.inf_on_commit > 0 || effects.inf_on_abort > 0
                                    : effects.sup_on_commit > 0 || effects.sup_on_abort > 0;
        if (makes_room)
            found = dirty.xmin;
        return !makes_room;
    });
    return found;
}

} // namespace interlock::escrow
