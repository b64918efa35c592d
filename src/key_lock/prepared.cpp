#include "key_lock/prepared.h"

#include "table/own_table.h"

namespace interlock::key_lock {

namespace {

// Columns of interlock_internal.prepared_key
enum PreparedColumn { kSpace, kHash, kName, kRole, kPreparedColumns };

} // namespace

// The lock ends with table_close: a prepared transaction would keep it until it is decided, and
// with it ALTER EXTENSION waiting.
static Oid table_of_names() {
    Oid schema = internal_schema();
    return OidIsValid(schema) ? get_relname_relid("prepared_key", schema) : InvalidOid;
}

static Relation open_names(LOCKMODE mode) {
    Oid table = table_of_names();
    return OidIsValid(table) ? try_table_open(table, mode) : nullptr;
}

// Not by a statement, which a read-only transaction could not run. Subscribers and other readers of
// the WAL have no use for it.
static ItemPointerData insert_name(Relation table, const LockName& name) {
    Datum values[kPreparedColumns];
    bool nulls[kPreparedColumns] = {};
    values[kSpace] = Int16GetDatum(static_cast<int16>(name.space));
    values[kHash] = Int64GetDatum(static_cast<int64>(name.hash));
    values[kName] =
        PointerGetDatum(cstring_to_text_with_len(name.bytes, static_cast<int>(name.length)));
    values[kRole] = ObjectIdGetDatum(GetUserId());
    HeapTuple row = heap_form_tuple(RelationGetDescr(table), values, nulls);
    heap_insert(table, row, GetCurrentCommandId(true), HEAP_INSERT_NO_LOGICAL, nullptr);
    ItemPointerData place = row->t_self;
    heap_freetuple(row);
    return place;
}

static HTAB* make_names() {
    HASHCTL control = {};
    control.keysize = sizeof(LOCKTAG);
    control.entrysize = sizeof(PreparedName);
    control.hcxt = CurrentMemoryContext;
    return hash_create("interlock names of prepared transactions", 64, &control,
                       HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static void add_name(HTAB* names, TupleTableSlot* slot) {
    slot_getallattrs(slot);
    const Datum* values = slot->tts_values;
    LOCKTAG tag = first_tag(static_cast<KeySpace>(DatumGetInt16(values[kSpace])),
                            static_cast<uint64>(DatumGetInt64(values[kHash])));
    char* name = TextDatumGetCString(values[kName]);
    bool found;
    auto* entry = static_cast<PreparedName*>(hash_search(names, &tag, HASH_ENTER, &found));
    if (!found)
        *entry = {tag, name, DatumGetObjectId(values[kRole])};
    else if (entry->name != nullptr && strcmp(entry->name, name) != 0)
        entry->name = nullptr;
}

Relation open_prepared_names() { return open_names(RowExclusiveLock); }

void store_prepared_name(Relation table, const LockName& name) {
    ItemPointerData place = insert_name(table, name);
    CommandCounterIncrement();
    simple_heap_delete(table, &place);
}

void close_prepared_names(Relation table) { table_close(table, RowExclusiveLock); }

// For views, which wait for no lock: without the table the names are not known.
HTAB* prepared_names() {
    Oid oid = table_of_names();
    if (!OidIsValid(oid) || !ConditionalLockRelationOid(oid, AccessShareLock))
        return nullptr;
    Relation table = try_table_open(oid, NoLock);
    if (table == nullptr)
        return nullptr;
    HTAB* names = make_names();
    SnapshotData undecided;
    InitDirtySnapshot(undecided);
    TupleTableSlot* slot = table_slot_create(table, nullptr);
    TableScanDesc scan = begin_table_scan(table, &undecided);
    while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
        add_name(names, slot);
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    table_close(table, AccessShareLock);
    return names;
}

} // namespace interlock::key_lock
