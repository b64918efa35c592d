#include "table/row_json.h"

namespace interlock {

namespace {

// jsonb stores short names before long ones, and those of one length by their bytes.
int compare_names(const void* left, const void* right, void* columns) {
    auto name = [&](const void* column) {
        AttrNumber attnum = *static_cast<const AttrNumber*>(column);
        return NameStr(TupleDescAttr(static_cast<TupleDesc>(columns), attnum - 1)->attname);
    };
    size_t left_length = strlen(name(left));
    size_t right_length = strlen(name(right));
    if (left_length != right_length)
        return left_length < right_length ? -1 : 1;
    return memcmp(name(left), name(right), left_length);
}

// --- Values of the commonest types ---------------------------------------------------------------

bool string_to_json(const char* text, size_t length, JsonbValue* json) {
    if (length > JENTRY_OFFLENMASK) // to_jsonb says so
        return false;
    json->type = jbvString;
    json->val.string.val = const_cast<char*>(text);
    json->val.string.len = static_cast<int>(length);
    return true;
}

bool string_to_json(const char* text, JsonbValue* json) {
    return string_to_json(text, strlen(text), json);
}

bool number_to_json(Numeric number, JsonbValue* json) {
    if (numeric_is_nan(number) || numeric_is_inf(number)) // no numbers in JSON
        return false;
    json->type = jbvNumeric;
    json->val.numeric = number;
    return true;
}

bool text_to_json(const text* value, JsonbValue* json) {
    return string_to_json(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value), json);
}

// Returns false for other types, and for values that are exceptions.
bool plain_to_json(Oid type, Datum value, JsonbValue* json) {
    switch (type) {
    case BOOLOID:
        json->type = jbvBool;
        json->val.boolean = DatumGetBool(value);
        return true;
    case INT2OID:
    case INT4OID:
    case INT8OID:
        return number_to_json(int64_to_numeric(integer_of(type, value)), json);
    case NUMERICOID:
        return number_to_json(DatumGetNumeric(value), json);
    case TEXTOID:
    case VARCHAROID:
    case BPCHAROID:
        return text_to_json(DatumGetTextPP(value), json);
    case DATEOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID:
        return string_to_json(JsonEncodeDateTime(nullptr, value, type, nullptr), json);
    case UUIDOID:
        return string_to_json(DatumGetCString(DirectFunctionCall1(uuid_out, value)), json);
    default:
        return false;
    }
}

// --- All others ----------------------------------------------------------------------------------

void prepare_to_jsonb(FmgrInfo* to_jsonb, Oid type) {
    fmgr_info(F_TO_JSONB, to_jsonb);
    fmgr_info_set_expr(reinterpret_cast<Node*>(makeFuncExpr(
                           F_TO_JSONB, JSONBOID, list_make1(makeNullConst(type, -1, InvalidOid)),
                           InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL)),
                       to_jsonb);
}

// An array or object in the form in which it can be a member.
JsonbValue unpacked(JsonbContainer* container) {
    JsonbParseState* state = nullptr;
    JsonbValue result = {};
    JsonbIterator* iterator = JsonbIteratorInit(container);
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE;) {
        bool has_value = token == WJB_KEY || token == WJB_VALUE || token == WJB_ELEM;
        JsonbValue* pushed = pushJsonbValue(&state, token, has_value ? &value : nullptr);
        if (token == WJB_END_ARRAY || token == WJB_END_OBJECT)
            result = *pushed;
    }
    return result;
}

JsonbValue other_to_json(Oid type, Datum value) {
    if (type != JSONBOID) {
        FmgrInfo to_jsonb;
        prepare_to_jsonb(&to_jsonb, type);
        value = FunctionCall1(&to_jsonb, value);
    }
    Jsonb* json = DatumGetJsonbP(value);
    if (!JB_ROOT_IS_SCALAR(json))
        return unpacked(&json->root);
    JsonbValue result;
    (void)JsonbExtractScalar(&json->root, &result);
    return result;
}

JsonbValue value_to_json(Oid type, Datum value, bool is_null) {
    JsonbValue json = {};
    json.type = jbvNull;
    if (!is_null && !plain_to_json(type, value, &json))
        return other_to_json(type, value);
    return json;
}

} // namespace

JsonMembers json_members(TupleDesc columns, const Bitmapset* which) {
    JsonMembers members = {};
    members.columns =
        static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (bms_num_members(which) + 1)));
    for (int column = -1; (column = bms_next_member(which, column)) >= 0;)
        members.columns[members.count++] = column;
    qsort_arg(members.columns, members.count, sizeof(AttrNumber), compare_names, columns);
    return members;
}

Datum members_to_jsonb(TupleDesc columns, const JsonMembers& members, const RowValues& row) {
    JsonbValue object;
    object.type = jbvObject;
    object.val.object.nPairs = members.count;
    object.val.object.pairs =
        static_cast<JsonbPair*>(palloc(sizeof(JsonbPair) * (members.count + 1)));
    for (int i = 0; i < members.count; i++) {
        int position = members.columns[i] - 1;
        Form_pg_attribute attribute = TupleDescAttr(columns, position);
        JsonbPair* pair = &object.val.object.pairs[i];
        (void)string_to_json(NameStr(attribute->attname), &pair->key);
        pair->value = value_to_json(attribute->atttypid, row.values[position], row.nulls[position]);
        pair->order = i;
    }
    return JsonbPGetDatum(JsonbValueToJsonb(&object));
}

Datum columns_to_jsonb(TupleDesc columns, HeapTuple row, const Bitmapset* which) {
    return members_to_jsonb(columns, json_members(columns, which), values_of_row(columns, row));
}

Datum row_to_jsonb(TupleDesc columns, HeapTuple row) {
    Bitmapset* all = nullptr;
    for (int i = 0; i < columns->natts; i++)
        if (!TupleDescAttr(columns, i)->attisdropped)
            all = bms_add_member(all, i + 1);
    return columns_to_jsonb(columns, row, all);
}

namespace {

bool equal_as_jsonb(TupleDesc columns, AttrNumber attnum, Datum left, Datum right) {
    TupleDesc column = CreateTemplateTupleDesc(1);
    TupleDescCopyEntry(column, 1, columns, attnum);
    bool is_null = false;
    Jsonb* rows[2] = {
        DatumGetJsonbP(row_to_jsonb(column, heap_form_tuple(column, &left, &is_null))),
        DatumGetJsonbP(row_to_jsonb(column, heap_form_tuple(column, &right, &is_null)))};
    return compareJsonbContainers(&rows[0]->root, &rows[1]->root) == 0;
}

bool equal_numbers(Oid type, Datum left, Datum right) {
    switch (type) {
    case NUMERICOID:
        return DatumGetBool(DirectFunctionCall2(numeric_eq, left, right));
    case FLOAT4OID:
        return float4_eq(DatumGetFloat4(left), DatumGetFloat4(right));
    case FLOAT8OID:
        return float8_eq(DatumGetFloat8(left), DatumGetFloat8(right));
    default:
        return false;
    }
}

} // namespace

bool equal_values(TupleDesc columns, AttrNumber attnum, NullableDatum left, NullableDatum right) {
    if (left.isnull || right.isnull)
        return left.isnull == right.isnull;
    Form_pg_attribute attribute = TupleDescAttr(columns, attnum - 1);
    if (same_image(attribute, left.value, right.value))
        return true;
    Oid type = getBaseType(attribute->atttypid);
    if (type == NUMERICOID || type == FLOAT4OID || type == FLOAT8OID)
        return equal_numbers(type, left.value, right.value);
    return equal_as_jsonb(columns, attnum, left.value, right.value);
}

} // namespace interlock
