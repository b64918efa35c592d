#include "table/row_json.h"

#include "table/json_form.h"
#include "table/populate.h"

namespace interlock::inline table {

// jsonb stores short names before long ones, and those of one length by their bytes.
static int compare_names(const void* left, const void* right, void* columns) {
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

// --- Values --------------------------------------------------------------------------------------

static JsonbValue value_to_json(Oid type, Datum value, bool is_null);
static JsonbValue fields_to_json(TupleDesc columns, const JsonMembers& members,
                                 const RowValues& row);

static JsonbValue string_to_json(const char* text, size_t length) {
    if (length > JENTRY_OFFLENMASK)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("string too long to represent as jsonb string")));
    JsonbValue json = {};
    json.type = jbvString;
    json.val.string.val = const_cast<char*>(text);
    json.val.string.len = static_cast<int>(length);
    return json;
}

static JsonbValue string_to_json(const char* text) { return string_to_json(text, strlen(text)); }

static JsonbValue text_to_json(const JsonForm& form, Datum value) {
    return string_to_json(OidOutputFunctionCall(form.output, value));
}

static JsonbValue number_to_json(Numeric number) {
    JsonbValue json = {};
    json.type = jbvNumeric;
    json.val.numeric = number;
    return json;
}

// JSON has no numbers that are none, or infinite.
static JsonbValue numeric_to_json(Numeric number) {
    if (numeric_is_nan(number) || numeric_is_inf(number))
        return string_to_json(
            DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(number))));
    return number_to_json(number);
}

// Nor has jsonb one that is -0.
static JsonbValue float_to_json(const JsonForm& form, Datum value) {
    double number = form.base == FLOAT4OID ? DatumGetFloat4(value) : DatumGetFloat8(value);
    char* text = OidOutputFunctionCall(form.output, value);
    if (!std::isfinite(number) || (number == 0 && std::signbit(number)))
        return string_to_json(text);
    return number_to_json(DatumGetNumeric(DirectFunctionCall3(
        numeric_in, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1))));
}

// --- JSON in JSON --------------------------------------------------------------------------------

static JsonbValue json_to_json(JsonbContainer* container);

static JsonbValue member_to_json(const JsonbValue& member) {
    return member.type == jbvBinary ? json_to_json(member.val.binary.data) : member;
}

// An array or object in the form in which it can be a member.
static JsonbValue json_to_json(JsonbContainer* container) {
    check_stack_depth();
    JsonbValue result = {};
    JsonbIterator* iterator = JsonbIteratorInit(container);
    JsonbValue value;
    int count = 0;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE;) {
        if (token == WJB_BEGIN_ARRAY) {
            result.type = jbvArray;
            result.val.array.nElems = value.val.array.nElems;
            result.val.array.elems =
                static_cast<JsonbValue*>(palloc(sizeof(JsonbValue) * (value.val.array.nElems + 1)));
        } else if (token == WJB_BEGIN_OBJECT) {
            result.type = jbvObject;
            result.val.object.nPairs = value.val.object.nPairs;
            result.val.object.pairs =
                static_cast<JsonbPair*>(palloc(sizeof(JsonbPair) * (value.val.object.nPairs + 1)));
        } else if (token == WJB_ELEM) {
            result.val.array.elems[count++] = member_to_json(value);
        } else if (token == WJB_KEY) {
            result.val.object.pairs[count].key = value;
            result.val.object.pairs[count].order = count;
        } else if (token == WJB_VALUE) {
            result.val.object.pairs[count++].value = member_to_json(value);
        }
    }
    return result;
}

static JsonbValue jsonb_to_json(Jsonb* json) {
    if (!JB_ROOT_IS_SCALAR(json))
        return json_to_json(&json->root);
    JsonbValue result;
    (void)JsonbExtractScalar(&json->root, &result);
    return result;
}

static JsonbValue json_text_to_json(const JsonForm& form, Datum value) {
    char* text = OidOutputFunctionCall(form.output, value);
    Jsonb* json = jsonb_of_text(text);
    return json != nullptr ? jsonb_to_json(json) : string_to_json(text);
}

// --- Arrays and rows -----------------------------------------------------------------------------

static bool begins_with_one(const ArrayType* array) {
    for (int i = 0; i < ARR_NDIM(array); i++)
        if (ARR_LBOUND(array)[i] != 1)
            return false;
    return true;
}

namespace {

// The elements of an array, and those that have been taken from it.
struct Elements {
    const JsonForm* array;
    int dimensions;
    const int* counts;
    Datum* values;
    bool* nulls;
    int taken;
    bool come_back; // as they are
};

} // namespace

// Whether a value that is no null comes back from an element of an array. There the null of JSON
// would be that of SQL, and a string may stand for JSON that jsonb does not take.
static bool comes_back(JsonKind kind, const JsonbValue& json) {
    return kind == JsonKind::kJson    ? json.type != jbvNull && json.type != jbvString
           : kind == JsonKind::kJsonb ? json.type != jbvNull
                                      : true;
}

static JsonbValue next_element(Elements* elements) {
    int taken = elements->taken++;
    JsonbValue element =
        value_to_json(elements->array->element, elements->values[taken], elements->nulls[taken]);
    // jsonb_populate_record takes an array in an array for another dimension.
    if (!elements->nulls[taken] &&
        (element.type == jbvArray || !comes_back(elements->array->element_kind, element)))
        elements->come_back = false;
    return element;
}

static JsonbValue dimension_to_json(Elements* elements, int dimension) {
    JsonbValue json = {};
    json.type = jbvArray;
    json.val.array.nElems = dimension < elements->dimensions ? elements->counts[dimension] : 0;
    json.val.array.elems =
        static_cast<JsonbValue*>(palloc(sizeof(JsonbValue) * (json.val.array.nElems + 1)));
    for (int i = 0; i < json.val.array.nElems; i++)
        json.val.array.elems[i] = dimension + 1 < elements->dimensions
                                      ? dimension_to_json(elements, dimension + 1)
                                      : next_element(elements);
    return json;
}

static Elements elements_of(const JsonForm& form, ArrayType* array) {
    Elements elements = {};
    elements.array = &form;
    elements.dimensions = ARR_NDIM(array);
    elements.counts = ARR_DIMS(array);
    elements.come_back = true;
    int count;
    deconstruct_array(array, form.element, form.element_length, form.element_by_value,
                      form.element_align, &elements.values, &elements.nulls, &count);
    return elements;
}

static JsonbValue array_to_json(const JsonForm& form, Datum value) {
    ArrayType* array = DatumGetArrayTypeP(value);
    if (!begins_with_one(array))
        return text_to_json(form, value);
    Elements elements = elements_of(form, array);
    JsonbValue json = dimension_to_json(&elements, 0);
    return elements.come_back ? json : text_to_json(form, value);
}

static Bitmapset* all_columns(TupleDesc columns) {
    Bitmapset* all = nullptr;
    for (int i = 0; i < columns->natts; i++)
        if (!TupleDescAttr(columns, i)->attisdropped)
            all = bms_add_member(all, i + 1);
    return all;
}

// By the names of its fields always: the type may have others, in another order, when it is read.
static JsonbValue object_to_json(Datum value) {
    HeapTupleHeader header = DatumGetHeapTupleHeader(value);
    HeapTupleData tuple = row_in(header);
    // A copy, as the names are used afterwards.
    TupleDesc columns = lookup_rowtype_tupdesc_copy(HeapTupleHeaderGetTypeId(header),
                                                    HeapTupleHeaderGetTypMod(header));
    JsonMembers members = json_members(columns, all_columns(columns));
    return fields_to_json(columns, members, values_of_row(columns, &tuple));
}

// --- All of them ---------------------------------------------------------------------------------

static JsonbValue other_to_json(Oid type, Datum value) {
    check_stack_depth();
    JsonForm form = json_form(type);
    switch (form.kind) {
    case JsonKind::kFloat:
        return float_to_json(form, value);
    case JsonKind::kJson:
        return json_text_to_json(form, value);
    case JsonKind::kJsonb:
        return jsonb_to_json(DatumGetJsonbP(value));
    case JsonKind::kArray:
        return array_to_json(form, value);
    case JsonKind::kObject:
        return object_to_json(value);
    case JsonKind::kText:
        return text_to_json(form, value);
    default: // a domain over one of the commonest types
        return value_to_json(form.base, value, false);
    }
}

// The commonest types need no form.
static bool is_common(Oid type) {
    switch (type) {
    case BOOLOID:
    case INT2OID:
    case INT4OID:
    case INT8OID:
    case NUMERICOID:
    case TEXTOID:
    case VARCHAROID:
    case BPCHAROID:
    case DATEOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID:
    case UUIDOID:
    case JSONBOID:
        return true;
    default:
        return false;
    }
}

static JsonbValue value_to_json(Oid type, Datum value, bool is_null) {
    JsonbValue json = {};
    json.type = jbvNull;
    if (is_null)
        return json;
    switch (type) {
    case BOOLOID:
        json.type = jbvBool;
        json.val.boolean = DatumGetBool(value);
        return json;
    case INT2OID:
    case INT4OID:
    case INT8OID:
        return number_to_json(int64_to_numeric(integer_of(type, value)));
    case NUMERICOID:
        return numeric_to_json(DatumGetNumeric(value));
    case TEXTOID:
    case VARCHAROID:
    case BPCHAROID: {
        const text* string = DatumGetTextPP(value);
        return string_to_json(VARDATA_ANY(string), VARSIZE_ANY_EXHDR(string));
    }
    case DATEOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID:
        return string_to_json(JsonEncodeDateTime(nullptr, value, type, nullptr));
    case UUIDOID:
        return string_to_json(DatumGetCString(DirectFunctionCall1(uuid_out, value)));
    case JSONBOID:
        return jsonb_to_json(DatumGetJsonbP(value));
    default:
        return other_to_json(type, value);
    }
}

static JsonbValue fields_to_json(TupleDesc columns, const JsonMembers& members,
                                 const RowValues& row) {
    JsonbValue object = {};
    object.type = jbvObject;
    object.val.object.nPairs = members.count;
    object.val.object.pairs =
        static_cast<JsonbPair*>(palloc(sizeof(JsonbPair) * (members.count + 1)));
    for (int i = 0; i < members.count; i++) {
        int position = members.columns[i] - 1;
        Form_pg_attribute attribute = TupleDescAttr(columns, position);
        JsonbPair* pair = &object.val.object.pairs[i];
        pair->key = string_to_json(NameStr(attribute->attname));
        pair->value = value_to_json(attribute->atttypid, row.values[position], row.nulls[position]);
        pair->order = i;
    }
    return object;
}

static Printing printing_of(TupleDesc columns, const JsonMembers& members, JsonFor what) {
    Printing by = {};
    for (int i = 0; i < members.count; i++) {
        Oid type = TupleDescAttr(columns, members.columns[i] - 1)->atttypid;
        if (is_common(type))
            continue;
        Printing column = json_form(type).prints_by;
        by.styles = by.styles || column.styles;
        by.names = by.names || column.names;
        by.money = by.money || (column.money && what == JsonFor::kStorage);
    }
    return by;
}

JsonMembers json_members(TupleDesc columns, const Bitmapset* which) {
    JsonMembers members = {};
    members.columns =
        static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (bms_num_members(which) + 1)));
    for (int column = -1; (column = bms_next_member(which, column)) >= 0;)
        members.columns[members.count++] = column;
    qsort_arg(members.columns, members.count, sizeof(AttrNumber), compare_names, columns);
    return members;
}

Datum members_to_jsonb(TupleDesc columns, const JsonMembers& members, const RowValues& row,
                       JsonFor what) {
    Jsonb* result = nullptr;
    printing_alike(printing_of(columns, members, what), [&] {
        JsonbValue object = fields_to_json(columns, members, row);
        result = JsonbValueToJsonb(&object);
    });
    return JsonbPGetDatum(result);
}

Datum columns_to_jsonb(TupleDesc columns, HeapTuple row, const Bitmapset* which, JsonFor what) {
    return members_to_jsonb(columns, json_members(columns, which), values_of_row(columns, row),
                            what);
}

Datum row_to_jsonb(TupleDesc columns, HeapTuple row, JsonFor what) {
    return columns_to_jsonb(columns, row, all_columns(columns), what);
}

// As members of rows.
static bool equal_as_jsonb(TupleDesc columns, AttrNumber attnum, NullableDatum left,
                           NullableDatum right) {
    TupleDesc column = CreateTemplateTupleDesc(1);
    TupleDescCopyEntry(column, 1, columns, attnum);
    Jsonb* rows[2] = {
        DatumGetJsonbP(row_to_jsonb(column, heap_form_tuple(column, &left.value, &left.isnull))),
        DatumGetJsonbP(row_to_jsonb(column, heap_form_tuple(column, &right.value, &right.isnull)))};
    return compareJsonbContainers(&rows[0]->root, &rows[1]->root) == 0;
}

// Element by element, also where the arrays are texts in JSON.
static bool equal_arrays(const JsonForm& form, ArrayType* left, ArrayType* right) {
    int dimensions = ARR_NDIM(left);
    size_t size = sizeof(int) * dimensions;
    if (dimensions != ARR_NDIM(right) || memcmp(ARR_DIMS(left), ARR_DIMS(right), size) != 0 ||
        memcmp(ARR_LBOUND(left), ARR_LBOUND(right), size) != 0)
        return false;
    Jsonb* arrays[2];
    printing_alike(form.prints_by, [&] {
        for (int i = 0; i < 2; i++) {
            Elements elements = elements_of(form, i == 0 ? left : right);
            JsonbValue json = dimension_to_json(&elements, 0);
            arrays[i] = JsonbValueToJsonb(&json);
        }
    });
    return compareJsonbContainers(&arrays[0]->root, &arrays[1]->root) == 0;
}

static bool is_json(JsonKind kind) { return kind == JsonKind::kJson || kind == JsonKind::kJsonb; }

static bool equal_floats(Oid type, Datum left, Datum right) {
    return type == FLOAT4OID ? float4_eq(DatumGetFloat4(left), DatumGetFloat4(right))
                             : float8_eq(DatumGetFloat8(left), DatumGetFloat8(right));
}

bool equal_values(TupleDesc columns, AttrNumber attnum, NullableDatum left, NullableDatum right) {
    Form_pg_attribute attribute = TupleDescAttr(columns, attnum - 1);
    if (left.isnull && right.isnull)
        return true;
    if (left.isnull || right.isnull)
        return is_json(json_form(attribute->atttypid).kind) &&
               equal_as_jsonb(columns, attnum, left, right);
    if (same_image(attribute, left.value, right.value))
        return true;
    JsonForm form = json_form(attribute->atttypid);
    switch (form.kind) {
    case JsonKind::kNumeric:
        return DatumGetBool(DirectFunctionCall2(numeric_eq, left.value, right.value));
    case JsonKind::kFloat:
        return equal_floats(form.base, left.value, right.value);
    case JsonKind::kJsonb:
        return compareJsonbContainers(&DatumGetJsonbP(left.value)->root,
                                      &DatumGetJsonbP(right.value)->root) == 0;
    case JsonKind::kArray:
        return equal_arrays(form, DatumGetArrayTypeP(left.value), DatumGetArrayTypeP(right.value));
    case JsonKind::kJson:
    case JsonKind::kObject:
        return equal_as_jsonb(columns, attnum, left, right);
    case JsonKind::kText: // one text may have several forms: that of xml
        return form.length == -1 && form.base != BYTEAOID &&
               equal_as_jsonb(columns, attnum, left, right);
    default:
        return false;
    }
}

} // namespace interlock::inline table
