#include "table/key.h"

#include "server/arguments.h"
#include "table/populate.h"
#include "table/row_json.h"

namespace interlock {

namespace {

// A key is compared as it was given: rounded to the column's precision or cut to its length it
// would name another row. Hence no typmod, here and in from_json_object, and no domain.
constexpr int32 kNoTypmod = -1;

Datum from_text(const KeyColumn& key, char* text) {
    return InputFunctionCall(const_cast<FmgrInfo*>(&key.input), text, key.io_parameter, kNoTypmod);
}

[[noreturn]] void refuse_shape(Relation rel, const RelationFacts* facts) {
    StringInfoData names;
    initStringInfo(&names);
    for (int i = 0; i < facts->key_count; i++)
        appendStringInfo(&names, "%s\"%s\"", i > 0 ? ", " : "",
                         column_name(facts, facts->keys[i].attnum));
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("key does not fit the key of table \"%s\"", RelationGetRelationName(rel)),
             errhint("Give a jsonb object with exactly these members: %s.", names.data)));
}

[[noreturn]] void refuse_null(Relation rel, const RelationFacts* facts, int i) {
    ereport(ERROR,
            (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
             errmsg("key column \"%s\" of table \"%s\" must not be null",
                    column_name(facts, facts->keys[i].attnum), RelationGetRelationName(rel))));
}

Key from_json_object(Relation rel, const RelationFacts* facts, Jsonb* json) {
    for (int i = 0; i < facts->key_count; i++) {
        const char* name = column_name(facts, facts->keys[i].attnum);
        JsonbValue member;
        if (getKeyJsonValueFromContainer(&json->root, name, strlen(name), &member) == nullptr)
            refuse_shape(rel, facts);
        if (member.type == jbvNull)
            refuse_null(rel, facts, i);
    }
    if (JB_ROOT_COUNT(json) != static_cast<uint32>(facts->key_count))
        refuse_shape(rel, facts);
    TupleDesc columns = CreateTemplateTupleDesc(facts->key_count);
    for (int i = 0; i < facts->key_count; i++)
        TupleDescInitEntry(columns, i + 1, column_name(facts, facts->keys[i].attnum),
                           facts->keys[i].type, kNoTypmod, 0);
    Key key = {};
    bool nulls[INDEX_MAX_KEYS];
    heap_deform_tuple(record_from_jsonb(columns, json), columns, key.values, nulls);
    return key;
}

// A lone JSON string, number or boolean stands for the key column's value.
Key from_json_scalar(Relation rel, const RelationFacts* facts, const JsonbValue& scalar) {
    if (facts->key_count != 1)
        refuse_shape(rel, facts);
    Key key = {};
    switch (scalar.type) {
    case jbvNull:
        refuse_null(rel, facts, 0);
    case jbvBinary:
        refuse_shape(rel, facts);
    default:
        key.values[0] = from_text(facts->keys[0], scalar_text(scalar));
    }
    return key;
}

Key from_json(Relation rel, const RelationFacts* facts, Jsonb* json) {
    if (JB_ROOT_IS_OBJECT(json))
        return from_json_object(rel, facts, json);
    JsonbValue scalar;
    if (!JsonbExtractScalar(&json->root, &scalar))
        refuse_shape(rel, facts);
    return from_json_scalar(rel, facts, scalar);
}

bool integer_key(Datum value, Oid from, Oid to, Datum* result) {
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

char* to_text(Datum value, Oid type) {
    Oid output;
    bool is_varlena;
    getTypeOutputInfo(type, &output, &is_varlena);
    return OidOutputFunctionCall(output, value);
}

} // namespace

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

Key parse_key(Relation rel, const RelationFacts* facts, Datum value, Oid type) {
    require_key(rel, facts);
    bool is_single = facts->key_count == 1;
    Key key = {};
    if (is_single && (type == facts->keys[0].type ||
                      integer_key(value, type, facts->keys[0].type, &key.values[0]))) {
        if (type == facts->keys[0].type)
            key.values[0] = value;
        return key;
    }
    if (is_single && type == TEXTOID) {
        key.values[0] = from_text(facts->keys[0], TextDatumGetCString(value));
        return key;
    }
    if (Oid base = getBaseType(type); base != type)
        return parse_key(rel, facts, value, base);
    if (type == JSONBOID)
        return from_json(rel, facts, DatumGetJsonbP(value));
    if (is_single) {
        key.values[0] = from_text(facts->keys[0], to_text(value, type));
        return key;
    }
    char* json = type == TEXTOID ? TextDatumGetCString(value) : nullptr;
    if (json == nullptr || json[strspn(json, " \t\r\n")] != '{')
        refuse_shape(rel, facts);
    return from_json(rel, facts,
                     DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(json))));
}

Key parse_key(Relation rel, const RelationFacts* facts, const JsonbValue& value) {
    require_key(rel, facts);
    if (value.type != jbvBinary)
        return from_json_scalar(rel, facts, value);
    return from_json(rel, facts, JsonbValueToJsonb(const_cast<JsonbValue*>(&value)));
}

Key key_argument(const Arguments& arguments, int n, Relation rel, const RelationFacts* facts) {
    return parse_key(rel, facts, arguments.required(n, "key"), arguments.type(n));
}

Key key_of_tuple(const RelationFacts* facts, HeapTuple tuple) {
    Key key = {};
    bool is_null;
    for (int i = 0; i < facts->key_count; i++)
        key.values[i] = heap_getattr(tuple, facts->keys[i].attnum, facts->columns, &is_null);
    return key;
}

Datum key_to_jsonb(const RelationFacts* facts, const Key& key) {
    TupleDesc columns = CreateTemplateTupleDesc(facts->key_count);
    bool nulls[INDEX_MAX_KEYS] = {};
    for (int i = 0; i < facts->key_count; i++)
        TupleDescCopyEntry(columns, i + 1, facts->columns, facts->keys[i].attnum);
    return row_to_jsonb(columns, heap_form_tuple(columns, const_cast<Datum*>(key.values), nulls));
}

char* key_to_text(const RelationFacts* facts, const Key& key) {
    if (facts->key_count == 0)
        return nullptr;
    Jsonb* json = DatumGetJsonbP(key_to_jsonb(facts, key));
    return JsonbToCString(nullptr, &json->root, VARSIZE(json));
}

int compare_keys(const RelationFacts* facts, const Key& left, const Key& right) {
    for (int i = 0; i < facts->key_count; i++) {
        const KeyColumn& key = facts->keys[i];
        int order = DatumGetInt32(FunctionCall2Coll(
            const_cast<FmgrInfo*>(&key.compare), key.collation, left.values[i], right.values[i]));
        if (order != 0)
            return order;
    }
    return 0;
}

} // namespace interlock
