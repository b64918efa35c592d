// versioned_update_many: one call for many rows, each with the version that the client read.
//
// The rows are written in the order of the table's key, whatever order they are given in and
// whichever key names them, so that two calls over the same rows cannot deadlock. The results come
// in the order given.

#include "execution/update.h"
#include "server/arguments.h"
#include "server/result_row.h"
#include "server/scope.h"
#include "version/errors.h"
#include "version/update.h"

namespace interlock::version {

namespace {

struct Item {
    int position;
    Datum key_json;
    Key key;
    const Key* place; // in the order of keys: the table's key
    int64 expected;
    Changes changes;
    Attempt attempt;
};

struct Batch {
    Relation rel;
    const TableInfo* info;
    const Versioning* versioning;
    Bitmapset* managed;
    Item* items;
    Item** by_key;
    int count;
};

} // namespace

static Batch read_batch(const Arguments& arguments);
static void write_in_key_order(Batch* batch, bool all_or_nothing);
static void return_results(FunctionCallInfo fcinfo, const Batch& batch);

extern "C" {
PG_FUNCTION_INFO_V1(versioned_update_many);

Datum versioned_update_many(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    bool all_or_nothing = arguments.boolean(2, "all_or_nothing");
    Batch batch = read_batch(arguments);
    write_in_key_order(&batch, all_or_nothing);
    return_results(fcinfo, batch);
    close_table(batch.rel);
    PG_RETURN_NULL();
}
}

[[noreturn]] static void refuse_item(int position, const char* problem) {
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("update %d of the batch %s", position + 1, problem),
             errhint("Give an array of {\"key\": ..., \"version\": ..., \"changes\": {...}}.")));
}

static JsonbValue member_of(JsonbContainer* object, const char* name, int position) {
    JsonbValue value;
    if (getKeyJsonValueFromContainer(object, name, strlen(name), &value) == nullptr)
        refuse_item(position, psprintf("has no member \"%s\"", name));
    if (value.type == jbvNull)
        refuse_item(position, psprintf("has a null \"%s\"", name));
    return value;
}

static int64 token_of_json(const Versioning* versioning, const JsonbValue& json, int position) {
    if (json.type == jbvBinary)
        refuse_item(position, "has a version that is not a number or text");
    char* text = scalar_text(json);
    if (is_counter(versioning->kind))
        return DatumGetInt64(DirectFunctionCall1(int8in, CStringGetDatum(text)));
    Oid function, parameter;
    getTypeInputInfo(token_type(versioning->kind), &function, &parameter);
    return DatumGetInt64(OidInputFunctionCall(function, text, parameter, -1));
}

static void read_item(const Batch& batch, Item* item, const JsonbValue& element) {
    if (element.type != jbvBinary || !JsonContainerIsObject(element.val.binary.data))
        refuse_item(item->position, "is not an object");
    JsonbContainer* object = element.val.binary.data;
    JsonbValue key = member_of(object, "key", item->position);
    item->key_json = JsonbPGetDatum(JsonbValueToJsonb(&key));
    item->key = parse_key(batch.rel, batch.info, key);
    item->expected = token_of_json(batch.versioning, member_of(object, "version", item->position),
                                   item->position);
    JsonbValue changes = member_of(object, "changes", item->position);
    item->changes =
        parse_changes(batch.rel, batch.info, item->key, JsonbValueToJsonb(&changes), batch.managed);
}

static Batch read_batch(const Arguments& arguments) {
    Batch batch = {};
    batch.rel = open_table(arguments.relation(0), RowExclusiveLock);
    batch.info = table_info(batch.rel);
    batch.versioning = require_versioning(batch.rel, batch.info);
    batch.managed = bms_make_singleton(batch.versioning->column);
    Jsonb* updates = arguments.jsonb(1, "updates");
    if (!JB_ROOT_IS_ARRAY(updates) || JB_ROOT_IS_SCALAR(updates))
        refuse_argument("updates", "must be a jsonb array",
                        "Give an array of {\"key\": ..., \"version\": ..., \"changes\": {...}}.");
    batch.items = static_cast<Item*>(
        MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Item) * (JB_ROOT_COUNT(updates) + 1)));
    JsonbIterator* iterator = JsonbIteratorInit(&updates->root);
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE;) {
        if (token != WJB_ELEM)
            continue;
        CHECK_FOR_INTERRUPTS();
        Item* item = &batch.items[batch.count];
        *item = {};
        item->position = batch.count++;
        read_item(batch, item, value);
    }
    return batch;
}

// Rows given twice keep their order, so that the second finds the version of the first.
static int compare_items(const void* left, const void* right) {
    const Item* a = *static_cast<Item* const*>(left);
    const Item* b = *static_cast<Item* const*>(right);
    int order = compare_keys(*a->place, *b->place);
    return order != 0 ? order : a->position - b->position;
}

static void write_in_key_order(Batch* batch, bool all_or_nothing) {
    batch->by_key = static_cast<Item**>(
        MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Item*) * (batch->count + 1)));
    for (int i = 0; i < batch->count; i++) {
        CHECK_FOR_INTERRUPTS();
        Item* item = batch->by_key[i] = &batch->items[i];
        item->place = read_table_key(batch->rel, batch->info, item->key);
    }
    qsort(batch->by_key, batch->count, sizeof(Item*), compare_items);

    MemoryContext scratch =
        AllocSetContextCreate(CurrentMemoryContext, "interlock batch row", ALLOCSET_DEFAULT_SIZES);
    OpenUpdates open = {CurrentMemoryContext};
    for (int i = 0; i < batch->count; i++) {
        CHECK_FOR_INTERRUPTS();
        Item* item = batch->by_key[i];
        item->attempt = in_context(scratch, [&] {
            return update_if_current(batch->rel, batch->info, item->key, item->expected,
                                     item->changes, &open);
        });
        count_call(batch->info, item->attempt.outcome == Outcome::kConflict);
        if (all_or_nothing && item->attempt.outcome == Outcome::kNotFound)
            raise_no_such_row(batch->rel, batch->info, item->key);
        if (all_or_nothing && item->attempt.outcome == Outcome::kConflict)
            raise_version_conflict(batch->rel, batch->info, *item->attempt.key, item->expected,
                                   item->attempt.stored);
        MemoryContextReset(scratch);
    }
    close_updates(&open);
    MemoryContextDelete(scratch);
}

static void return_results(FunctionCallInfo fcinfo, const Batch& batch) {
    InitMaterializedSRF(fcinfo, 0);
    auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    for (int i = 0; i < batch.count; i++) {
        const Item& item = batch.items[i];
        Datum values[4] = {item.key_json, CStringGetTextDatum(outcome_name(item.attempt.outcome))};
        bool nulls[4] = {false, false, true, true};
        if (item.attempt.outcome != Outcome::kNotFound)
            set_version_columns(batch.versioning, item.attempt.stored, &values[2], &nulls[2]);
        add_result_row(result, values, nulls);
    }
}

} // namespace interlock::version
