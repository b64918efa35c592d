#include "history/short_entry.h"

#include "history/partition.h"
#include "history/table.h"
#include "table/name.h"

namespace interlock::history {

[[noreturn]] static void raise_unreadable(Oid entries, int64 id);

extern "C" {
PG_FUNCTION_INFO_V1(history_row);

// history_row(entries, id, row_data, row_hash): row_data is null if an entry that it needs is
// missing.
Datum history_row(PG_FUNCTION_ARGS) {
    bool is_missing = PG_ARGISNULL(2);
    bool is_compared = !PG_ARGISNULL(3);
    if (is_missing ||
        (is_compared && hash_of_row(PG_GETARG_DATUM(2)) != static_cast<uint64>(PG_GETARG_INT64(3))))
        raise_unreadable(PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0),
                         PG_ARGISNULL(1) ? 0 : PG_GETARG_INT64(1));
    return PG_GETARG_DATUM(2);
}
}

[[noreturn]] static void raise_unreadable(Oid entries, int64 id) {
    const char* name = get_rel_name(entries);
    if (name != nullptr && check_enable_rls(entries, InvalidOid, true) == RLS_ENABLED)
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("row security of table \"%s\" hides entries that entry " INT64_FORMAT
                               " needs",
                               name, id),
                        errhint("Its policies must show all entries of a row, or none. Or call "
                                "enable_history with whole_every => 1, for entries from now on.")));
    ereport(
        ERROR,
        (errcode(ERRCODE_DATA_CORRUPTED),
         errmsg("entry " INT64_FORMAT " of history table \"%s\" does not give the row that was "
                "recorded",
                id, name != nullptr ? name : "?"),
         errdetail("The entry is short, and an entry on which it builds is gone or was changed."),
         errhint("If entries were changed on purpose, set row_hash to null in the entries "
                 "that build on them.")));
}

// --- The hash ------------------------------------------------------------------------------------

static uint64 hash_of_bytes(const char* bytes, int size, uint64 seed) {
    return hash_bytes_extended(reinterpret_cast<const unsigned char*>(bytes), size, seed);
}

static uint64 hash_of_value(const JsonbValue& value, uint64 seed) {
    const char* text = "";
    switch (value.type) {
    case jbvString:
        return hash_of_bytes(value.val.string.val, value.val.string.len, seed + jbvString);
    case jbvBool:
        text = value.val.boolean ? "t" : "f";
        break;
    case jbvNumeric:
        text =
            DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(value.val.numeric)));
        break;
    case jbvBinary:
        text = JsonbToCString(nullptr, value.val.binary.data, value.val.binary.len);
        break;
    default:
        break;
    }
    return hash_of_bytes(text, static_cast<int>(strlen(text)), seed + value.type);
}

uint64 hash_of_row(Datum row) {
    uint64 sum = 0;
    uint64 name = 0;
    JsonbIterator* iterator = JsonbIteratorInit(&DatumGetJsonbP(row)->root);
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE;) {
        if (token == WJB_KEY)
            name = hash_of_value(value, 0);
        else if (token == WJB_VALUE || token == WJB_ELEM)
            sum += hash_of_value(value, name);
    }
    return sum;
}

// --- The newest entry ----------------------------------------------------------------------------

static NewestEntry entry_in(TupleTableSlot* slot) {
    const Datum* values = slot->tts_values;
    for (EntryColumn column : {kEntryId, kEntryChangedAt, kEntryDistance, kEntryHash})
        if (slot->tts_isnull[column])
            return {};
    return {true, DatumGetInt64(values[kEntryId]), DatumGetInt32(values[kEntryDistance]),
            static_cast<uint64>(DatumGetInt64(values[kEntryHash])),
            DatumGetTimestampTz(values[kEntryChangedAt])};
}

// SnapshotSelf shows what is committed now and what this transaction has written. The server notes
// no read of it for SERIALIZABLE (SerializationNeededForRead).
static NewestEntry newest_in(Relation entries, Datum key) {
    NewestEntry newest = {};
    Relation index = open_index_of_keys(entries);
    if (index == nullptr)
        return newest;
    TupleTableSlot* slot = table_slot_create(entries, nullptr);
    IndexScanDesc scan = begin_index_scan(entries, index, SnapshotSelf, 1);
    ScanKeyData hash;
    ScanKeyInit(&hash, 1, BTEqualStrategyNumber, F_INT8EQ,
                DirectFunctionCall2(jsonb_hash_extended, key, Int64GetDatum(0)));
    index_rescan(scan, &hash, 1, nullptr, 0);
    while (index_getnext_slot(scan, BackwardScanDirection, slot)) {
        CHECK_FOR_INTERRUPTS();
        slot_getsomeattrs(slot, kEntryColumns);
        if (!slot->tts_isnull[kEntryKey] &&
            DatumGetBool(DirectFunctionCall2(jsonb_eq, slot->tts_values[kEntryKey], key))) {
            newest = entry_in(slot);
            break;
        }
    }
    index_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    index_close(index, NoLock);
    return newest;
}

NewestEntry newest_entry(Relation entries, Datum key, TimestampTz now) {
    if (!is_partitioned(entries))
        return newest_in(entries, key);
    Relation partition = open_partition(entries, now);
    if (partition == nullptr)
        return {};
    NewestEntry newest = newest_in(partition, key);
    table_close(partition, NoLock);
    return newest;
}

bool may_build_on(const History* history, const NewestEntry& entry, TimestampTz now) {
    bool has_aged = history->keep_for > 0 && entry.changed_at <= now - history->keep_for;
    return entry.is_followed && !has_aged && entry.distance >= 0 &&
           entry.distance < history->whole_every - 1;
}

// --- The whole row -------------------------------------------------------------------------------

// The distance gets shorter with each step, so that there is an end whatever the owner has written.
const char* whole_row_sql(Oid entries) {
    return psprintf(
        "CASE WHEN h.builds_on IS NULL THEN h.row_data ELSE interlock_internal.history_row("
        "%u::pg_catalog.oid, h.id, (WITH RECURSIVE r AS (SELECT h.builds_on, h.distance, "
        "h.row_data UNION ALL SELECT b.builds_on, b.distance, b.row_data "
        "OPERATOR(pg_catalog.||) r.row_data FROM r, %s b WHERE b.id OPERATOR(pg_catalog.=) "
        "r.builds_on AND b.distance OPERATOR(pg_catalog.<) r.distance) SELECT r.row_data FROM r "
        "WHERE r.builds_on IS NULL), h.row_hash) END",
        entries, qualified_name(entries));
}

} // namespace interlock::history
