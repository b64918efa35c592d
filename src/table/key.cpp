#include "table/key.h"

#include "server/arguments.h"
#include "server/error.h"
#include "table/populate.h"
#include "table/row_json.h"

namespace interlock::inline table {

// A key is compared as given: rounded to the column's precision or cut to its length, it would name
// another row. Hence no typmod, here and in from_json_object, and no domain.
constexpr int32 kNoTypmod = -1;

// For a value that is none of the key's type: the caller may have meant another key.
static int hint_key(const TableInfo* info) {
    const char* column = column_name(info, info->key.columns[0].attnum);
    return info->other_key_count > 0
               ? errhint(
                     "Give a value of column \"%s\", or a jsonb object whose members are "
                     "exactly the columns of one key: %s.",
                     column, list_of_keys(info))
               : errhint("Give a value of column \"%s\".", column);
}

// The value of a key of one column.
static Datum from_text(const TableInfo* info, char* text) {
    const KeyColumn& key = info->key.columns[0];
    return with_hint([info] { hint_key(info); },
                     [&] {
                         FmgrInfo copy;
                         return InputFunctionCall(for_call(key.input, &copy), text,
                                                  key.io_parameter, kNoTypmod);
                     });
}

[[noreturn]] static void refuse_shape(Relation rel, const TableInfo* info) {
    const char* keys = list_of_keys(info);
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("key does not fit %s key of table \"%s\"",
                    info->other_key_count > 0 ? "any" : "the", RelationGetRelationName(rel)),
             info->other_key_count > 0
                 ? errhint("Give a jsonb object whose members are exactly the columns of one key: "
                           "%s.",
                           keys)
                 : errhint("Give a jsonb object with exactly these members: %.*s.",
                           static_cast<int>(strlen(keys)) - 2, keys + 1)));
}

[[noreturn]] static void refuse_null(Relation rel, const TableInfo* info, const KeyColumn& key) {
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("key column \"%s\" of table \"%s\" must not be null",
                           column_name(info, key.attnum), RelationGetRelationName(rel))));
}

static Key from_json_object(Relation rel, const TableInfo* info, Jsonb* json) {
    const UniqueKey* by = find_key(info, &json->root);
    if (by == nullptr)
        refuse_shape(rel, info);
    TupleDesc columns = CreateTemplateTupleDesc(by->count);
    for (int i = 0; i < by->count; i++) {
        const char* name = column_name(info, by->columns[i].attnum);
        JsonbValue member;
        if (getKeyJsonValueFromContainer(&json->root, name, strlen(name), &member)->type == jbvNull)
            refuse_null(rel, info, by->columns[i]);
        TupleDescInitEntry(columns, i + 1, name, by->columns[i].type, kNoTypmod, 0);
    }
    Key key = {};
    key.by = by;
    bool nulls[INDEX_MAX_KEYS];
    heap_deform_tuple(record_from_jsonb(columns, json), columns, key.values, nulls);
    return key;
}

static bool looks_like_object(const char* given) {
    constexpr const char* kBlank = " \t\r\n";
    const char* start = given + strspn(given, kBlank);
    return *start == '{' && start[1 + strspn(start + 1, kBlank)] == '"';
}

// Whether the text is a JSON object and cannot be a value of the type.
static bool is_object(const char* given, Oid type) {
    switch (type) {
    case BOOLOID:
    case INT2OID:
    case INT4OID:
    case INT8OID:
    case OIDOID:
    case FLOAT4OID:
    case FLOAT8OID:
    case NUMERICOID:
    case UUIDOID: // {a0eebc99-...} is one
    case DATEOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID:
        return looks_like_object(given);
    default:
        return false;
    }
}

// A lone JSON string, number or boolean stands for the key column's value.
static Key from_json_scalar(Relation rel, const TableInfo* info, const JsonbValue& scalar) {
    if (info->key.count != 1)
        refuse_shape(rel, info);
    Key key = {};
    key.by = &info->key;
    switch (scalar.type) {
    case jbvNull:
        refuse_null(rel, info, info->key.columns[0]);
    case jbvBinary:
        refuse_shape(rel, info);
    default:
        key.values[0] = from_text(info, scalar_text(scalar));
    }
    return key;
}

static Key from_json(Relation rel, const TableInfo* info, Jsonb* json) {
    if (JB_ROOT_IS_OBJECT(json))
        return from_json_object(rel, info, json);
    JsonbValue scalar;
    if (!JsonbExtractScalar(&json->root, &scalar))
        refuse_shape(rel, info);
    return from_json_scalar(rel, info, scalar);
}

static bool integer_key(Datum value, Oid from, Oid to, Datum* result) {
    int64 number;
    switch (from) {
    case INT2OID:
        number = DatumGetInt16(value);
        break;
    case INT4OID:
        number = DatumGetInt32(value);
        break;
    case INT8OID:
        number = DatumGetInt64(value);
        break;
    default:
        return false;
    }
    if (to == INT8OID)
        *result = Int64GetDatum(number);
    else if (to == INT4OID && number >= PG_INT32_MIN && number <= PG_INT32_MAX)
        *result = Int32GetDatum(static_cast<int32>(number));
    else
        return false; // the input function has the error message
    return true;
}

static char* to_text(Datum value, Oid type) {
    Oid output;
    bool is_varlena;
    getTypeOutputInfo(type, &output, &is_varlena);
    return OidOutputFunctionCall(output, value);
}

char* scalar_text(const JsonbValue& scalar) {
    switch (scalar.type) {
    case jbvString:
        return pnstrdup(scalar.val.string.val, scalar.val.string.len);
    case jbvNumeric:
        return DatumGetCString(
            DirectFunctionCall1(numeric_out, NumericGetDatum(scalar.val.numeric)));
    default:
        return pstrdup(scalar.val.boolean ? "true" : "false");
    }
}

Key parse_key(Relation rel, const TableInfo* info, Datum value, Oid type) {
    require_key(rel, info);
    bool is_single = info->key.count == 1;
    const KeyColumn* columns = info->key.columns;
    Key key = {};
    key.by = &info->key;
    if (is_single &&
        (type == columns[0].type || integer_key(value, type, columns[0].type, &key.values[0]))) {
        if (type == columns[0].type)
            key.values[0] = value;
        return key;
    }
    char* given = type == TEXTOID ? TextDatumGetCString(value) : nullptr;
    if (is_single && given != nullptr && !is_object(given, columns[0].type)) {
        key.values[0] = from_text(info, given);
        return key;
    }
    if (Oid base = getBaseType(type); base != type)
        return parse_key(rel, info, value, base);
    if (type == JSONBOID)
        return from_json(rel, info, DatumGetJsonbP(value));
    if (is_single && given == nullptr) {
        key.values[0] = from_text(info, to_text(value, type));
        return key;
    }
    if (given == nullptr || given[strspn(given, " \t\r\n")] != '{')
        refuse_shape(rel, info);
    return from_json(rel, info,
                     DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(given))));
}

Key parse_key(Relation rel, const TableInfo* info, const JsonbValue& value) {
    require_key(rel, info);
    if (value.type != jbvBinary)
        return from_json_scalar(rel, info, value);
    return from_json(rel, info, JsonbValueToJsonb(const_cast<JsonbValue*>(&value)));
}

Key key_argument(const Arguments& arguments, int n, Relation rel, const TableInfo* info) {
    return parse_key(rel, info, arguments.required(n, "key"), arguments.type(n));
}

Key key_of_tuple(const TableInfo* info, HeapTuple tuple) {
    Key key = {};
    key.by = &info->key;
    bool is_null;
    for (int i = 0; i < info->key.count; i++)
        key.values[i] = heap_getattr(tuple, info->key.columns[i].attnum, info->columns, &is_null);
    return key;
}

bool is_text_of_object(const TableInfo* info, const Key& key) {
    if (!is_named_by_table_key(info, key) || key.by->count != 1)
        return false;
    Oid type = key.by->columns[0].type;
    return TypeCategory(type) == TYPCATEGORY_STRING &&
           looks_like_object(to_text(key.values[0], type));
}

Datum key_to_jsonb(const TableInfo* info, const Key& key) {
    TupleDesc columns = CreateTemplateTupleDesc(key.by->count);
    bool nulls[INDEX_MAX_KEYS] = {};
    for (int i = 0; i < key.by->count; i++)
        TupleDescCopyEntry(columns, i + 1, info->columns, key.by->columns[i].attnum);
    return row_to_jsonb(columns, heap_form_tuple(columns, const_cast<Datum*>(key.values), nulls));
}

char* key_to_text(const TableInfo* info, const Key& key) {
    if (key.by->count == 0)
        return nullptr;
    Jsonb* json = DatumGetJsonbP(key_to_jsonb(info, key));
    return JsonbToCString(nullptr, &json->root, VARSIZE(json));
}

int compare_keys(const Key& left, const Key& right) {
    CHECK_FOR_INTERRUPTS();
    if (left.by != right.by)
        return left.by->index < right.by->index ? -1 : 1;
    for (int i = 0; i < left.by->count; i++) {
        const KeyColumn& key = left.by->columns[i];
        int order = DatumGetInt32(FunctionCall2Coll(
            const_cast<FmgrInfo*>(&key.compare), key.collation, left.values[i], right.values[i]));
        if (order != 0)
            return order;
    }
    return 0;
}

} // namespace interlock::inline table
