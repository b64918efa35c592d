// Merging two changes of one value: numbers add up both changes, arrays are sets, jsonb objects are
// merged member by member.

#include "ownership/ownership.h"

#include "server/json_builder.h"
#include "table/row.h"

namespace interlock::ownership {

// Numbers: theirs + (mine - base).

static bool is_integer(Oid type) { return type == INT2OID || type == INT4OID || type == INT8OID; }
static bool is_float(Oid type) { return type == FLOAT4OID || type == FLOAT8OID; }

static Datum add_integers(Oid type, Datum base, Datum theirs, Datum mine) {
    auto sum = static_cast<__int128>(integer_of(type, theirs)) + integer_of(type, mine) -
               integer_of(type, base);
    __int128 limit = type == INT2OID ? PG_INT16_MAX : type == INT4OID ? PG_INT32_MAX : PG_INT64_MAX;
    if (sum > limit || sum < -limit - 1)
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("the sum of both changes is out of range for type %s",
                               format_type_be(type))));
    auto result = static_cast<int64>(sum);
    return type == INT2OID   ? Int16GetDatum(static_cast<int16>(result))
           : type == INT4OID ? Int32GetDatum(static_cast<int32>(result))
                             : Int64GetDatum(result);
}

static double double_of(Oid type, Datum value) {
    return type == FLOAT4OID ? DatumGetFloat4(value) : DatumGetFloat8(value);
}

static bool add_floats(Oid type, Datum base, Datum theirs, Datum mine, Datum* sum) {
    for (Datum value : {base, theirs, mine})
        if (!std::isfinite(double_of(type, value)))
            return false;
    PGFunction add = type == FLOAT4OID ? float4pl : float8pl;
    PGFunction subtract = type == FLOAT4OID ? float4mi : float8mi;
    *sum = DirectFunctionCall2(add, theirs, DirectFunctionCall2(subtract, mine, base));
    // A change that is too small compared with theirs would be lost.
    return double_of(type, *sum) != double_of(type, theirs) ||
           double_of(type, mine) == double_of(type, base);
}

static bool add_numerics(Form_pg_attribute attribute, Datum base, Datum theirs, Datum mine,
                         Datum* sum) {
    for (Datum value : {base, theirs, mine})
        if (numeric_is_nan(DatumGetNumeric(value)) || numeric_is_inf(DatumGetNumeric(value)))
            return false;
    *sum = DirectFunctionCall2(numeric_add, theirs, DirectFunctionCall2(numeric_sub, mine, base));
    int32 typmod = attribute->atttypmod;
    getBaseTypeAndTypmod(attribute->atttypid, &typmod);
    *sum = DirectFunctionCall2(numeric, *sum, Int32GetDatum(typmod)); // a domain's is not assigned
    return true;
}

// Arrays of one dimension and arrays of jsonb scalars: theirs without the elements that mine
// removed, then those that mine added. Nulls are equal to each other.

namespace {

struct Element {
    Datum value; // of a jsonb array: a pointer to a JsonbValue
    bool is_null;
};

struct ElementOrder {
    qsort_arg_comparator compare;
    FmgrInfo* function;
    Oid collation;
};

struct Set {
    Element* elements; // in the array's order
    Element* sorted;
    int count;
};

} // namespace

static int compare_elements(const void* left_pointer, const void* right_pointer,
                            void* order_pointer) {
    CHECK_FOR_INTERRUPTS();
    const auto& left = *static_cast<const Element*>(left_pointer);
    const auto& right = *static_cast<const Element*>(right_pointer);
    const auto& order = *static_cast<const ElementOrder*>(order_pointer);
    if (left.is_null || right.is_null)
        return (left.is_null ? 1 : 0) - (right.is_null ? 1 : 0);
    return DatumGetInt32(
        FunctionCall2Coll(order.function, order.collation, left.value, right.value));
}

static Element* room_for_elements(int count) {
    return static_cast<Element*>(
        MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Element) * (count + 1)));
}

// False when there are duplicates.
static bool sort_set(Set* set, ElementOrder* order) {
    set->sorted = room_for_elements(set->count);
    memcpy(set->sorted, set->elements, sizeof(Element) * set->count);
    qsort_arg(set->sorted, set->count, sizeof(Element), order->compare, order);
    for (int i = 1; i < set->count; i++)
        if (order->compare(&set->sorted[i - 1], &set->sorted[i], order) == 0)
            return false;
    return true;
}

// False when the array is no set: of several dimensions, or with duplicates.
static bool read_set(ArrayType* array, const TypeCacheEntry* element, ElementOrder* order,
                     Set* set) {
    if (ARR_NDIM(array) > 1)
        return false;
    Datum* values;
    bool* nulls;
    deconstruct_array(array, element->type_id, element->typlen, element->typbyval,
                      element->typalign, &values, &nulls, &set->count);
    set->elements = room_for_elements(set->count);
    for (int i = 0; i < set->count; i++)
        set->elements[i] = {values[i], nulls[i]};
    return sort_set(set, order);
}

static bool contains(const Set& set, const Element& element, ElementOrder* order) {
    int low = 0;
    int high = set.count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order_of_both = order->compare(&set.sorted[middle], &element, order);
        if (order_of_both == 0)
            return true;
        if (order_of_both < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

// Calls take(element) for each element of the merged set.
template <typename Take>
static void combine_sets(const Set& was, const Set& theirs, const Set& mine, ElementOrder* order,
                         Take&& take) {
    for (int i = 0; i < theirs.count; i++)
        if (!contains(was, theirs.elements[i], order) || contains(mine, theirs.elements[i], order))
            take(theirs.elements[i]);
    for (int i = 0; i < mine.count; i++)
        if (!contains(was, mine.elements[i], order) && !contains(theirs, mine.elements[i], order))
            take(mine.elements[i]);
}

static bool combine_arrays(Oid element_type, Oid collation, NullableDatum base, Datum theirs,
                           Datum mine, Datum* combined) {
    TypeCacheEntry* element = lookup_type_cache(element_type, TYPECACHE_CMP_PROC_FINFO);
    if (!OidIsValid(element->cmp_proc_finfo.fn_oid))
        return false;
    ElementOrder order = {compare_elements, &element->cmp_proc_finfo, collation};
    ArrayType* base_array =
        base.isnull ? construct_empty_array(element_type) : DatumGetArrayTypeP(base.value);
    ArrayType* their_array = DatumGetArrayTypeP(theirs);
    Set was, their_set, my_set;
    if (!read_set(base_array, element, &order, &was) ||
        !read_set(their_array, element, &order, &their_set) ||
        !read_set(DatumGetArrayTypeP(mine), element, &order, &my_set))
        return false;
    int most = their_set.count + my_set.count + 1;
    auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * most));
    auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * most));
    int count = 0;
    combine_sets(was, their_set, my_set, &order, [&](const Element& taken) {
        values[count] = taken.value;
        nulls[count++] = taken.is_null;
    });
    int lower = ARR_NDIM(their_array) == 1 ? ARR_LBOUND(their_array)[0] : 1;
    *combined = PointerGetDatum(
        count == 0 ? construct_empty_array(element_type)
                   : construct_md_array(values, nulls, 1, &count, &lower, element_type,
                                        element->typlen, element->typbyval, element->typalign));
    return true;
}

// jsonb. A null pointer is a member that is not there.

namespace {

enum class JsonKind : uint8 { kNothing, kObject, kArray, kScalar };

} // namespace

static JsonKind kind_of(const JsonbValue* value) {
    if (value == nullptr || value->type == jbvNull)
        return JsonKind::kNothing;
    if (value->type != jbvBinary)
        return JsonKind::kScalar;
    return JsonContainerIsObject(value->val.binary.data) ? JsonKind::kObject : JsonKind::kArray;
}

static int sign_of(int64 number) { return (number > 0 ? 1 : 0) - (number < 0 ? 1 : 0); }

// Any order will do in which equal ones are alike.
static int compare_scalars(const JsonbValue& left, const JsonbValue& right) {
    if (left.type != right.type)
        return sign_of(static_cast<int64>(left.type) - static_cast<int64>(right.type));
    switch (left.type) {
    case jbvString:
        if (left.val.string.len != right.val.string.len)
            return sign_of(static_cast<int64>(left.val.string.len) - right.val.string.len);
        return memcmp(left.val.string.val, right.val.string.val, left.val.string.len);
    case jbvNumeric:
        return DatumGetInt32(DirectFunctionCall2(numeric_cmp, NumericGetDatum(left.val.numeric),
                                                 NumericGetDatum(right.val.numeric)));
    case jbvBool:
        return (left.val.boolean ? 1 : 0) - (right.val.boolean ? 1 : 0);
    default:
        return 0;
    }
}

static bool same_json(const JsonbValue* left, const JsonbValue* right) {
    if (left == nullptr || right == nullptr)
        return left == right;
    if (left->type != jbvBinary || right->type != jbvBinary)
        return compare_scalars(*left, *right) == 0;
    return compareJsonbContainers(left->val.binary.data, right->val.binary.data) == 0;
}

static JsonbValue* member_of(const JsonbValue* object, const JsonbValue& key) {
    if (kind_of(object) != JsonKind::kObject)
        return nullptr;
    auto* member = static_cast<JsonbValue*>(palloc(sizeof(JsonbValue)));
    return getKeyJsonValueFromContainer(object->val.binary.data, key.val.string.val,
                                        key.val.string.len, member);
}

// Calls visit(key, value) for the members of an object, or visit(element, element) for the elements
// of an array, until it returns false.
template <typename Visit>
static bool each_child(const JsonbValue* container, Visit&& visit) {
    if (kind_of(container) != JsonKind::kObject && kind_of(container) != JsonKind::kArray)
        return true;
    JsonbIterator* iterator = JsonbIteratorInit(container->val.binary.data);
    JsonbValue key = {};
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE;) {
        if (token == WJB_KEY)
            key = value;
        else if (token == WJB_VALUE && !visit(key, value))
            return false;
        else if (token == WJB_ELEM && !visit(value, value))
            return false;
    }
    return true;
}

static int compare_json_elements(const void* left, const void* right, void*) {
    CHECK_FOR_INTERRUPTS();
    auto value = [](const void* element) -> const JsonbValue& {
        return *reinterpret_cast<const JsonbValue*>(
            DatumGetPointer(static_cast<const Element*>(element)->value));
    };
    return compare_scalars(value(left), value(right));
}

// False when the array has duplicates, or elements that are no scalars: an object that both sides
// changed is one, and would become two. Nothing is the empty set.
static bool read_json_set(const JsonbValue* array, ElementOrder* order, Set* set) {
    int count = kind_of(array) == JsonKind::kArray ? JsonContainerSize(array->val.binary.data) : 0;
    auto* values = static_cast<JsonbValue*>(
        MemoryContextAllocHuge(CurrentMemoryContext, sizeof(JsonbValue) * (count + 1)));
    set->elements = room_for_elements(count);
    set->count = 0;
    return each_child(array,
                      [&](const JsonbValue& element, const JsonbValue&) {
                          JsonbValue* value = &values[set->count];
                          *value = element;
                          set->elements[set->count++] = {PointerGetDatum(value), false};
                          return element.type != jbvBinary;
                      }) &&
           sort_set(set, order);
}

static bool combine_json(const JsonbValue* base, const JsonbValue* theirs, const JsonbValue* mine,
                         const JsonbValue* key, JsonBuilder* output);

static bool combine_objects(const JsonbValue* base, const JsonbValue* theirs,
                            const JsonbValue* mine, JsonBuilder* output) {
    output->push(WJB_BEGIN_OBJECT);
    bool combined = each_child(theirs,
                               [&](const JsonbValue& key, const JsonbValue& value) {
                                   return combine_json(member_of(base, key), &value,
                                                       member_of(mine, key), &key, output);
                               }) &&
                    each_child(mine, [&](const JsonbValue& key, const JsonbValue& value) {
                        return member_of(theirs, key) != nullptr ||
                               combine_json(member_of(base, key), nullptr, &value, &key, output);
                    });
    if (combined)
        output->push(WJB_END_OBJECT);
    return combined;
}

static bool combine_json_arrays(const JsonbValue* base, const JsonbValue* theirs,
                                const JsonbValue* mine, JsonBuilder* output) {
    ElementOrder order = {compare_json_elements, nullptr, InvalidOid};
    Set was, their_set, my_set;
    if (!read_json_set(base, &order, &was) || !read_json_set(theirs, &order, &their_set) ||
        !read_json_set(mine, &order, &my_set))
        return false;
    output->push(WJB_BEGIN_ARRAY);
    combine_sets(was, their_set, my_set, &order, [&](const Element& taken) {
        output->push(WJB_ELEM, reinterpret_cast<JsonbValue*>(DatumGetPointer(taken.value)));
    });
    output->push(WJB_END_ARRAY);
    return true;
}

// Writes one merged value, with its key if it is a member; nothing if it was removed.
static bool combine_json(const JsonbValue* base, const JsonbValue* theirs, const JsonbValue* mine,
                         const JsonbValue* key, JsonBuilder* output) {
    check_stack_depth();
    CHECK_FOR_INTERRUPTS();
    bool keep_theirs = same_json(mine, base) || same_json(mine, theirs);
    if (key != nullptr && (keep_theirs || same_json(theirs, base))) {
        const JsonbValue* only = keep_theirs ? theirs : mine;
        if (only == nullptr)
            return true;
        output->push(WJB_KEY, key);
        output->push(WJB_VALUE, only);
        return true;
    }
    if (key != nullptr)
        output->push(WJB_KEY, key);
    JsonKind kind = kind_of(mine);
    bool fits =
        kind == kind_of(theirs) && (kind_of(base) == kind || kind_of(base) == JsonKind::kNothing);
    if (fits && kind == JsonKind::kObject)
        return combine_objects(base, theirs, mine, output);
    return fits && kind == JsonKind::kArray && combine_json_arrays(base, theirs, mine, output);
}

static JsonbValue* root_of(Jsonb* json) {
    auto* value = static_cast<JsonbValue*>(palloc(sizeof(JsonbValue)));
    if (JsonbExtractScalar(&json->root, value))
        return value;
    value->type = jbvBinary;
    value->val.binary.data = &json->root;
    value->val.binary.len = static_cast<int>(VARSIZE(json) - VARHDRSZ);
    return value;
}

// Both sides have changed the value, to different ones.
static bool combine_jsonb(NullableDatum base, Datum theirs, Datum mine, Datum* combined) {
    JsonbValue* was = base.isnull ? nullptr : root_of(DatumGetJsonbP(base.value));
    JsonBuilder output;
    JsonbValue* their_root = root_of(DatumGetJsonbP(theirs));
    JsonbValue* my_root = root_of(DatumGetJsonbP(mine));
    if (kind_of(my_root) == JsonKind::kNothing || kind_of(my_root) == JsonKind::kScalar ||
        !combine_json(was, their_root, my_root, nullptr, &output))
        return false;
    *combined = JsonbPGetDatum(JsonbValueToJsonb(output.value()));
    return true;
}

static bool combine(const TableInfo* info, AttrNumber column, NullableDatum base, Datum theirs,
                    Datum mine, Datum* combined) {
    Form_pg_attribute attribute = TupleDescAttr(info->columns, column - 1);
    Oid type = getBaseType(attribute->atttypid);
    if (type == JSONBOID)
        return combine_jsonb(base, theirs, mine, combined);
    Oid element = get_element_type(type);
    if (OidIsValid(element))
        return combine_arrays(element, attribute->attcollation, base, theirs, mine, combined);
    if (base.isnull)
        return false;
    if (is_float(type))
        return add_floats(type, base.value, theirs, mine, combined);
    if (type == NUMERICOID)
        return add_numerics(attribute, base.value, theirs, mine, combined);
    if (!is_integer(type))
        return false;
    *combined = add_integers(type, base.value, theirs, mine);
    return true;
}

bool is_counted(const TableInfo* info, AttrNumber column) {
    const ColumnRule* rule = rule_of(info, column);
    if (rule == nullptr || rule->access != Access::kShared || rule->strategy != Strategy::kMerge ||
        rule->group != 0)
        return false;
    Oid type = getBaseType(TupleDescAttr(info->columns, column - 1)->atttypid);
    return is_integer(type) || is_float(type) || type == NUMERICOID;
}

bool combine_values(const TableInfo* info, AttrNumber column, NullableDatum base,
                    NullableDatum theirs, NullableDatum mine, Datum* combined) {
    if (theirs.isnull || mine.isnull ||
        !combine(info, column, base, theirs.value, mine.value, combined))
        return false;
    Oid type = TupleDescAttr(info->columns, column - 1)->atttypid;
    if (get_typtype(type) == TYPTYPE_DOMAIN)
        domain_check(*combined, false, type, nullptr, nullptr);
    return true;
}

} // namespace interlock::ownership
