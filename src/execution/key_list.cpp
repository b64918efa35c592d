#include "execution/key_list.h"

#include "execution/stored_row.h"
#include "server/arguments.h"
#include "server/error.h"
#include "table/key_index.h"

namespace interlock::inline execution {

namespace {

// The keys are read one after the other into an array that has room for all of them.
struct Reader {
    Relation rel;
    const TableInfo* info;
    KeyList list;
};

} // namespace

static void make_room(Reader* reader, size_t count) {
    reader->list.keys =
        static_cast<Key*>(palloc_extended(sizeof(Key) * (count + 1), MCXT_ALLOC_HUGE));
}

static void add_key(Reader* reader, Datum value, bool is_null, Oid type) {
    CHECK_FOR_INTERRUPTS();
    if (is_null)
        refuse_nulls("keys", "array_remove(keys, NULL) leaves nulls out.");
    reader->list.keys[reader->list.count++] = parse_key(reader->rel, reader->info, value, type);
}

static void read_sql_array(Reader* reader, ArrayType* array) {
    Oid type = ARR_ELEMTYPE(array);
    int16 length;
    bool by_value;
    char alignment;
    get_typlenbyvalalign(type, &length, &by_value, &alignment);
    Datum* values;
    bool* nulls;
    int count;
    deconstruct_array(array, type, length, by_value, alignment, &values, &nulls, &count);
    make_room(reader, count);
    for (int i = 0; i < count; i++)
        add_key(reader, values[i], nulls[i], type);
}

constexpr const char* kShapeHint =
    "Give an array of the key's type, such as '{1,2}', or a jsonb array of objects, each with the "
    "columns of a unique key, such as '[{\"id\": 1}]'.";

[[noreturn]] static void refuse_shape() { refuse_argument("keys", "must be an array", kShapeHint); }

static void read_json_array(Reader* reader, Jsonb* json) {
    if (!JB_ROOT_IS_ARRAY(json) || JB_ROOT_IS_SCALAR(json))
        refuse_shape();
    uint32 count = JB_ROOT_COUNT(json);
    make_room(reader, count);
    for (uint32 i = 0; i < count; i++) {
        JsonbValue* element = getIthJsonbValueFromContainer(&json->root, i);
        add_key(reader, JsonbPGetDatum(JsonbValueToJsonb(element)), element->type == jbvNull,
                JSONBOID);
    }
}

// A literal, or what a driver sent without a type.
static void read_text(Reader* reader, char* keys) {
    if (keys[strspn(keys, " \t\r\n")] == '[') {
        read_json_array(reader,
                        DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(keys))));
        return;
    }
    Datum array = with_hint([] { errhint("%s", kShapeHint); },
                            [&] { return OidInputFunctionCall(F_ARRAY_IN, keys, TEXTOID, -1); });
    read_sql_array(reader, DatumGetArrayTypeP(array));
}

static void read_keys(Reader* reader, Datum keys, Oid type) {
    if (type == TEXTOID)
        read_text(reader, TextDatumGetCString(keys));
    else if (type_is_array(type))
        read_sql_array(reader, DatumGetArrayTypeP(keys));
    else if (type == JSONBOID)
        read_json_array(reader, DatumGetJsonbP(keys));
    else
        refuse_shape();
}

static int order_of_keys(const void* left, const void* right) {
    return compare_keys(*static_cast<const Key*>(left), *static_cast<const Key*>(right));
}

static void sort_distinct(KeyList* list) {
    qsort(list->keys, list->count, sizeof(Key), order_of_keys);
    int distinct = 0;
    for (int i = 0; i < list->count; i++)
        if (i == 0 || compare_keys(list->keys[distinct - 1], list->keys[i]) != 0)
            list->keys[distinct++] = list->keys[i];
    list->count = distinct;
}

namespace {

// A key that was given, and the one that decides on its place: the table's key of the row.
struct PlacedKey {
    const Key* given;
    const Key* place;
};

} // namespace

static int order_of_places(const void* left, const void* right) {
    return compare_keys(*static_cast<const PlacedKey*>(left)->place,
                        *static_cast<const PlacedKey*>(right)->place);
}

static void sort_distinct_by_row(Reader* reader) {
    KeyList* list = &reader->list;
    const Key* given = list->keys;
    auto* placed = static_cast<PlacedKey*>(
        palloc_extended(sizeof(PlacedKey) * (list->count + 1), MCXT_ALLOC_HUGE));
    for (int i = 0; i < list->count; i++) {
        CHECK_FOR_INTERRUPTS();
        placed[i] = {&given[i], read_table_key(reader->rel, reader->info, given[i])};
    }
    qsort(placed, list->count, sizeof(PlacedKey), order_of_places);
    int count = list->count;
    make_room(reader, count);
    list->count = 0;
    for (int i = 0; i < count; i++)
        if (i == 0 || order_of_places(&placed[i - 1], &placed[i]) != 0)
            list->keys[list->count++] = *placed[i].given;
}

static const UniqueKey* common_key(const KeyList& list) {
    for (int i = 1; i < list.count; i++)
        if (list.keys[i].by != list.keys[0].by)
            return nullptr;
    return list.count > 0 ? list.keys[0].by : nullptr;
}

KeyList key_list_argument(const Arguments& arguments, int n, Relation rel, const TableInfo* info) {
    Datum keys = arguments.required(n, "keys");
    require_key(rel, info);
    Reader reader = {rel, info, {}};
    read_keys(&reader, keys, getBaseType(arguments.type(n)));
    reader.list.by = common_key(reader.list);
    if (reader.list.by == &info->key)
        sort_distinct(&reader.list);
    else
        sort_distinct_by_row(&reader);
    return reader.list;
}

} // namespace interlock::inline execution
