// lock_rows: rows locked in the order of their keys, whatever order they are asked for in, so that
// two calls never deadlock.

#include "execution/read.h"
#include "execution/stored_row.h"
#include "server/arguments.h"
#include "server/deadline.h"
#include "table/row.h"
#include "table/row_json.h"

using namespace interlock;

namespace {

struct RowsCall {
    Relation rel;
    const TableInfo* info;
    Key* keys; // distinct, in order
    int count;
    JsonMembers shown; // of a row that is locked: its key
    RowLock lock;
    Deadline deadline;
};

RowsCall read_call(const Arguments& arguments);
void lock_all(const RowsCall& call, ReturnSetInfo* output);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(lock_rows);

// lock_rows(rel, keys, strength, wait)
Datum lock_rows(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    RowsCall call = read_call(Arguments(fcinfo));
    if (call.count > 0)
        lock_all(call, output);
    close_table(call.rel);
    return 0;
}
}

namespace {

// --- Arguments -----------------------------------------------------------------------------------

RowStrength strength_argument(const Arguments& arguments, int n) {
    char* strength = arguments.string(n, "strength");
    if (strcmp(strength, "update") == 0)
        return RowStrength::kUpdate;
    if (strcmp(strength, "no_key_update") == 0)
        return RowStrength::kNoKeyUpdate;
    if (strcmp(strength, "share") == 0)
        return RowStrength::kShare;
    if (strcmp(strength, "key_share") == 0)
        return RowStrength::kKeyShare;
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("unknown strength \"%s\"", strength),
             errhint("Strengths are update, no_key_update, share and key_share.")));
}

// 'wait', 'nowait', 'skip_locked', or how long to wait in all.
RowWait wait_argument(const Arguments& arguments, int n, Deadline* deadline) {
    char* wait = arguments.string(n, "wait");
    if (strcmp(wait, "nowait") == 0)
        return RowWait::kNowait;
    if (strcmp(wait, "skip_locked") == 0)
        return RowWait::kSkipLocked;
    if (strcmp(wait, "wait") == 0)
        return RowWait::kWait;
    if (strcspn(wait, "0123456789") == strlen(wait))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("unknown wait \"%s\"", wait),
                 errhint("Give wait, nowait, skip_locked, or a time such as '5 s'.")));
    Datum interval = DirectFunctionCall3(interval_in, CStringGetDatum(wait),
                                         ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
    *deadline = Deadline::after(DatumGetIntervalP(interval));
    return RowWait::kWait;
}

int order_of_keys(const void* left, const void* right, void* info) {
    return compare_keys(static_cast<const TableInfo*>(info), *static_cast<const Key*>(left),
                        *static_cast<const Key*>(right));
}

void add_key(RowsCall* call, Datum value, bool is_null, Oid type) {
    if (is_null)
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("key must not be null"),
                        errhint("array_remove(keys, NULL) leaves nulls out.")));
    call->keys[call->count++] = parse_key(call->rel, call->info, value, type);
}

void read_sql_array(RowsCall* call, ArrayType* array) {
    Oid type = ARR_ELEMTYPE(array);
    int16 length;
    bool by_value;
    char alignment;
    get_typlenbyvalalign(type, &length, &by_value, &alignment);
    Datum* values;
    bool* nulls;
    int count;
    deconstruct_array(array, type, length, by_value, alignment, &values, &nulls, &count);
    call->keys = static_cast<Key*>(palloc_extended(sizeof(Key) * (count + 1), MCXT_ALLOC_HUGE));
    for (int i = 0; i < count; i++)
        add_key(call, values[i], nulls[i], type);
}

[[noreturn]] void refuse_shape() {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("keys must be an array"),
                    errhint("Give an array of the key's type, or a JSON array of objects for a "
                            "composite key.")));
}

void read_json_array(RowsCall* call, Jsonb* json) {
    if (!JB_ROOT_IS_ARRAY(json) || JB_ROOT_IS_SCALAR(json))
        refuse_shape();
    uint32 count = JB_ROOT_COUNT(json);
    call->keys = static_cast<Key*>(palloc_extended(sizeof(Key) * (count + 1), MCXT_ALLOC_HUGE));
    for (uint32 i = 0; i < count; i++) {
        JsonbValue* element = getIthJsonbValueFromContainer(&json->root, i);
        add_key(call, JsonbPGetDatum(JsonbValueToJsonb(element)), element->type == jbvNull,
                JSONBOID);
    }
}

// A literal, or what a driver sent without a type.
void read_text(RowsCall* call, char* keys) {
    if (keys[strspn(keys, " \t\r\n")] == '[') {
        read_json_array(call, DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(keys))));
        return;
    }
    Datum array = OidInputFunctionCall(F_ARRAY_IN, keys, TEXTOID, -1);
    read_sql_array(call, DatumGetArrayTypeP(array));
}

void read_keys(RowsCall* call, Datum keys, Oid type) {
    if (type == TEXTOID)
        read_text(call, TextDatumGetCString(keys));
    else if (type_is_array(type))
        read_sql_array(call, DatumGetArrayTypeP(keys));
    else if (type == JSONBOID)
        read_json_array(call, DatumGetJsonbP(keys));
    else
        refuse_shape();
}

void keys_argument(RowsCall* call, const Arguments& arguments, int n) {
    Datum keys = arguments.required(n, "keys");
    require_key(call->rel, call->info);
    read_keys(call, keys, getBaseType(arguments.type(n)));
    qsort_arg(call->keys, call->count, sizeof(Key), order_of_keys,
              const_cast<TableInfo*>(call->info));
    int distinct = 0;
    for (int i = 0; i < call->count; i++)
        if (i == 0 || compare_keys(call->info, call->keys[distinct - 1], call->keys[i]) != 0)
            call->keys[distinct++] = call->keys[i];
    call->count = distinct;
}

RowsCall read_call(const Arguments& arguments) {
    RowsCall call = {nullptr, nullptr, nullptr, 0, {}, {}, Deadline::after(nullptr)};
    call.lock.strength = strength_argument(arguments, 2);
    call.lock.wait = wait_argument(arguments, 3, &call.deadline);
    call.rel = open_table(arguments.relation(0), RowShareLock);
    call.info = table_info(call.rel);
    keys_argument(&call, arguments, 1);
    call.shown = json_members(call.info->columns, call.info->key_columns);
    return call;
}

// --- Locking -------------------------------------------------------------------------------------

struct LockedRow {
    const RowsCall* call;
    const Key* key;
};

void name_row_in_context(void* argument) {
    const auto* row = static_cast<const LockedRow*>(argument);
    errcontext("locking row %s of table \"%s\"", key_to_text(row->call->info, *row->key),
               RelationGetRelationName(row->call->rel));
}

// By the shared means, or by a statement when there are none.
bool lock_one(const RowsCall& call, const Key& key, const DirectReads* reads, Datum* locked_key) {
    if (reads != nullptr)
        return read_next_directly(*reads, key, [&](TupleTableSlot* version) {
            *locked_key =
                members_to_jsonb(RelationGetDescr(call.rel), call.shown, values_in(version));
        });
    StoredRow row = read_row(call.rel, call.info, key, call.info->key_columns, call.lock);
    if (row.found)
        *locked_key = stored_row_to_jsonb(row);
    return row.found;
}

bool lock_in_time(const RowsCall& call, const Key& key, const DirectReads* reads,
                  Datum* locked_key) {
    LockedRow locked = {&call, &key};
    ErrorContextCallback context = {error_context_stack, name_row_in_context, &locked};
    error_context_stack = &context;
    bool found;
    call.deadline.bound([&] { found = lock_one(call, key, reads, locked_key); });
    error_context_stack = context.previous;
    return found;
}

void lock_all(const RowsCall& call, ReturnSetInfo* output) {
    MemoryContext row_memory =
        AllocSetContextCreate(CurrentMemoryContext, "lock_rows", ALLOCSET_DEFAULT_SIZES);
    DirectReads reads;
    bool direct = begin_direct_reads(&reads, call.rel, call.info, call.lock);
    for (int i = 0; i < call.count; i++) {
        CHECK_FOR_INTERRUPTS();
        Datum key;
        bool found = in_context(row_memory, [&] {
            return lock_in_time(call, call.keys[i], direct ? &reads : nullptr, &key);
        });
        bool is_null = false;
        if (found)
            tuplestore_putvalues(output->setResult, output->setDesc, &key, &is_null);
        MemoryContextReset(row_memory);
    }
    if (direct)
        end_direct_reads(reads);
}

} // namespace
