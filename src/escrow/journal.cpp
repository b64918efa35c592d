#include "escrow/journal.h"

#include "server/arguments.h"
#include "server/sequence.h"
#include "table/own_table.h"

namespace interlock {

namespace {

constexpr const char* kCounterTable = "escrow_counter";
constexpr const char* kPartTable = "escrow_part";

// Columns of interlock_internal.escrow_counter and escrow_part, from 1.
enum CounterColumn { kId = 1, kRel, kColumnName, kKey, kCounterColumns = kKey };
enum PartColumn { kCounter = 1, kAmount, kPartColumns = kAmount };

Oid index_named(const char* name) {
    Oid index = get_relname_relid(name, internal_schema());
    if (!OidIsValid(index))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("index \"%s.%s\" does not exist", kInternalSchema, name)));
    return index;
}

// The rows of one scan; visit(tuple, description) until it returns false.
template <typename Visit>
void scan_rows(const char* table, const char* index, LOCKMODE mode, Snapshot snapshot,
               ScanKeyData* keys, int count, Visit&& visit) {
    Relation rel = table_open(internal_table(table), mode);
    SysScanDesc scan = systable_beginscan(rel, index_named(index), true, snapshot, count, keys);
    HeapTuple tuple;
    while (HeapTupleIsValid(tuple = systable_getnext(scan)))
        if (!visit(rel, tuple))
            break;
    systable_endscan(scan);
    table_close(rel, NoLock);
}

template <typename Body>
void with_snapshot(Snapshot snapshot, Body&& body) {
    Snapshot registered = RegisterSnapshot(snapshot);
    body(registered);
    UnregisterSnapshot(registered);
}

Snapshot newest_snapshot() {
    return IsolationUsesXactSnapshot() ? GetTransactionSnapshot() : GetLatestSnapshot();
}

template <typename Visit>
void scan_parts(int64 counter, LOCKMODE mode, Snapshot snapshot, Visit&& visit) {
    ScanKeyData key;
    ScanKeyInit(&key, kCounter, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(counter));
    scan_rows(kPartTable, "escrow_part_counter", mode, snapshot, &key, 1, visit);
}

Datum column_of(Relation rel, HeapTuple tuple, int column) {
    bool is_null;
    return heap_getattr(tuple, column, RelationGetDescr(rel), &is_null);
}

int64 part_of_row(const EscrowColumn& column, Relation rel, HeapTuple tuple) {
    return amount_of_numeric(column, column_of(rel, tuple, kAmount));
}

// Under REPEATABLE READ and above another transaction may have deleted it since the snapshot.
void delete_row(Relation rel, HeapTuple tuple) {
    TM_FailureData failure;
    if (heap_delete(rel, &tuple->t_self, GetCurrentCommandId(true), InvalidSnapshot, true, &failure,
                    false) != TM_Ok)
        ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                        errmsg("could not serialize access due to concurrent update")));
}

void insert_row(Relation rel, Datum* values) {
    bool nulls[kCounterColumns] = {};
    HeapTuple tuple = heap_form_tuple(RelationGetDescr(rel), values, nulls);
    CatalogTupleInsert(rel, tuple);
    heap_freetuple(tuple);
    CommandCounterIncrement();
}

} // namespace

// prints_alike() is for values; a text of another collation may equal another text.
bool may_name_counter(const TableInfo* info, AttrNumber attnum) {
    Form_pg_attribute attribute = TupleDescAttr(info->columns, attnum - 1);
    switch (attribute->atttypid) {
    case INT2OID:
    case INT4OID:
    case INT8OID:
    case UUIDOID:
        return true;
    case TEXTOID:
    case VARCHAROID:
        return get_collation_isdeterministic(attribute->attcollation);
    default:
        return false;
    }
}

text* counter_key(const TableInfo* info, const Key& key) {
    Datum* texts = static_cast<Datum*>(palloc(sizeof(Datum) * key.by->count));
    for (int i = 0; i < key.by->count; i++) {
        Oid type = TupleDescAttr(info->columns, key.by->columns[i].attnum - 1)->atttypid;
        texts[i] = CStringGetTextDatum(print_value(type, key.values[i]));
    }
    ArrayType* array = construct_array(texts, key.by->count, TEXTOID, -1, false, TYPALIGN_INT);
    return cstring_to_text(print_value(TEXTARRAYOID, PointerGetDatum(array)));
}

void require_table_key(const TableInfo* info, const Key& key) {
    if (!is_named_by_table_key(info, key))
        refuse_argument("key", "must be the key of the table",
                        psprintf("It is %s.", list_of_columns(info, info->key)));
}

namespace {

int64 find_counter(const CounterName& name, Snapshot snapshot) {
    int64 counter = 0;
    ScanKeyData keys[3];
    ScanKeyInit(&keys[0], kRel, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(name.rel));
    ScanKeyInit(&keys[1], kColumnName, BTEqualStrategyNumber, F_NAMEEQ, NameGetDatum(name.column));
    ScanKeyInit(&keys[2], kKey, BTEqualStrategyNumber, F_TEXTEQ, PointerGetDatum(name.key));
    scan_rows(kCounterTable, "escrow_counter_name", AccessShareLock, snapshot, keys, 3,
              [&](Relation rel, HeapTuple tuple) {
                  counter = DatumGetInt64(column_of(rel, tuple, kId));
                  return false;
              });
    return counter;
}

} // namespace

int64 find_counter(const CounterName& name) {
    int64 counter = 0;
    with_snapshot(GetLatestSnapshot(),
                  [&](Snapshot snapshot) { counter = find_counter(name, snapshot); });
    return counter;
}

int64 counter_in_snapshot(const CounterName& name) {
    return find_counter(name, GetActiveSnapshot());
}

int64 create_counter(const CounterName& name) {
    int64 counter = nextval_internal(internal_table("escrow_counter_id"), false);
    Datum values[kCounterColumns] = {Int64GetDatum(counter), ObjectIdGetDatum(name.rel),
                                     NameGetDatum(name.column), PointerGetDatum(name.key)};
    Relation rel = table_open(internal_table(kCounterTable), RowExclusiveLock);
    insert_row(rel, values);
    table_close(rel, NoLock);
    return counter;
}

bool read_counter(int64 counter, Oid* rel, NameData* column) {
    bool found = false;
    ScanKeyData key;
    ScanKeyInit(&key, kId, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(counter));
    with_snapshot(GetLatestSnapshot(), [&](Snapshot snapshot) {
        scan_rows(kCounterTable, "escrow_counter_pkey", AccessShareLock, snapshot, &key, 1,
                  [&](Relation counters, HeapTuple tuple) {
                      *rel = DatumGetObjectId(column_of(counters, tuple, kRel));
                      *column = *DatumGetName(column_of(counters, tuple, kColumnName));
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

namespace {

// visit(rel, tuple) for each counter of the column, as of now.
template <typename Visit>
void each_counter(Oid rel, const NameData& column, LOCKMODE mode, Visit&& visit) {
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], kRel, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(rel));
    ScanKeyInit(&keys[1], kColumnName, BTEqualStrategyNumber, F_NAMEEQ, NameGetDatum(&column));
    with_snapshot(GetLatestSnapshot(), [&](Snapshot snapshot) {
        scan_rows(kCounterTable, "escrow_counter_name", mode, snapshot, keys, 2, visit);
    });
}

} // namespace

void forget_counters(Oid rel, const NameData& column) {
    each_counter(rel, column, RowExclusiveLock, [](Relation counters, HeapTuple tuple) {
        int64 counter = DatumGetInt64(column_of(counters, tuple, kId));
        with_snapshot(GetLatestSnapshot(), [&](Snapshot snapshot) {
            scan_parts(counter, RowExclusiveLock, snapshot, [](Relation parts, HeapTuple part) {
                delete_row(parts, part);
                return true;
            });
        });
        delete_row(counters, tuple);
        return true;
    });
    CommandCounterIncrement();
}

bool has_parts(Oid rel, const EscrowColumn& column) {
    bool found = false;
    each_counter(rel, column.name, AccessShareLock, [&](Relation counters, HeapTuple tuple) {
        UndecidedParts parts =
            read_undecided(column, DatumGetInt64(column_of(counters, tuple, kId)));
        found = parts.committed_count + parts.count > 0;
        return !found;
    });
    return found;
}

void insert_part(const EscrowColumn& column, int64 counter, int64 delta) {
    Datum values[kPartColumns] = {Int64GetDatum(counter), numeric_of(column, delta)};
    Relation rel = table_open(internal_table(kPartTable), RowExclusiveLock);
    insert_row(rel, values);
    table_close(rel, NoLock);
}

int64 take_parts(const EscrowColumn& column, int64 counter, int* count) {
    int64 sum = 0;
    *count = 0;
    with_snapshot(newest_snapshot(), [&](Snapshot snapshot) {
        scan_parts(counter, RowExclusiveLock, snapshot, [&](Relation rel, HeapTuple tuple) {
            sum = add_amounts(sum, part_of_row(column, rel, tuple));
            delete_row(rel, tuple);
            ++*count;
            return true;
        });
    });
    CommandCounterIncrement();
    return sum;
}

int64 sum_of_parts(const EscrowColumn& column, int64 counter) {
    int64 sum = 0;
    scan_parts(counter, AccessShareLock, GetActiveSnapshot(), [&](Relation rel, HeapTuple tuple) {
        sum = add_amounts(sum, part_of_row(column, rel, tuple));
        return true;
    });
    return sum;
}

UndecidedParts read_undecided(const EscrowColumn& column, int64 counter) {
    UndecidedParts parts = {};
    int room = 0;
    SnapshotData dirty;
    InitDirtySnapshot(dirty);
    scan_parts(counter, AccessShareLock, &dirty, [&](Relation rel, HeapTuple tuple) {
        int64 amount = part_of_row(column, rel, tuple);
        TransactionId xid = dirty.xmin;
        TransactionId inserter = HeapTupleHeaderGetRawXmin(tuple->t_data);
        if (!TransactionIdIsValid(xid) && TransactionIdIsCurrentTransactionId(inserter))
            xid = inserter;
        if (!TransactionIdIsValid(xid)) {
            parts.committed = add_amounts(parts.committed, amount);
            parts.committed_count++;
            return true;
        }
        if (parts.count == room) {
            room = Max(8, room * 2);
            Size size = sizeof(InDoubt) * room;
            parts.in_doubt = static_cast<InDoubt*>(
                parts.in_doubt == nullptr ? palloc(size) : repalloc(parts.in_doubt, size));
        }
        parts.in_doubt[parts.count++] = {xid, effects_of(amount)};
        return true;
    });
    return parts;
}

Range range_of(int64 row, const UndecidedParts& parts) {
    int64 value = add_amounts(row, parts.committed);
    Range range = {value, value};
    for (int i = 0; i < parts.count; i++) {
        range.inf = add_amounts(range.inf, -parts.in_doubt[i].effects.inf_on_abort);
        range.sup = add_amounts(range.sup, parts.in_doubt[i].effects.sup_on_abort);
    }
    return range;
}

TransactionId undecided_transaction(int64 counter) {
    TransactionId xid = InvalidTransactionId;
    SnapshotData dirty;
    InitDirtySnapshot(dirty);
    scan_parts(counter, AccessShareLock, &dirty, [&](Relation, HeapTuple) {
        xid = dirty.xmin;
        return !TransactionIdIsValid(xid);
    });
    return xid;
}

} // namespace interlock
