#include "configure/arguments.h"

#include "server/arguments.h"
#include "server/error.h"
#include "server/seconds.h"
#include "table/key.h"
#include "table/own_table.h"

namespace interlock::configure {

// Functions that enable a concept have one form.
static HeapTuple function_named(const char* name) {
    CatCList* list = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum(name));
    HeapTuple found = nullptr;
    for (int i = 0; found == nullptr && i < list->n_members; i++) {
        HeapTuple each = &list->members[i]->tuple;
        if (reinterpret_cast<Form_pg_proc>(GETSTRUCT(each))->pronamespace == own_schema())
            found = heap_copytuple(each);
    }
    ReleaseSysCacheList(list);
    if (found == nullptr)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                        errmsg("function %s.%s does not exist", kOwnSchema, name)));
    return found;
}

static List* texts_of(Oid type, Datum array) {
    Datum* values;
    bool* nulls;
    int count;
    bool has_names = type == NAMEARRAYOID;
    deconstruct_array(DatumGetArrayTypeP(array), has_names ? NAMEOID : TEXTOID,
                      has_names ? NAMEDATALEN : -1, false, has_names ? TYPALIGN_CHAR : TYPALIGN_INT,
                      &values, &nulls, &count);
    List* texts = NIL;
    for (int i = 0; i < count; i++) {
        CHECK_FOR_INTERRUPTS();
        texts = lappend(texts, has_names ? pstrdup(NameStr(*DatumGetName(values[i])))
                                         : TextDatumGetCString(values[i]));
    }
    return texts;
}

static JsonbValue json_of_texts(const List* texts) {
    auto** all = static_cast<const char**>(palloc(sizeof(char*) * (list_length(texts) + 1)));
    for (int i = 0; i < list_length(texts); i++)
        all[i] = static_cast<const char*>(list_nth(texts, i));
    JsonbValue value;
    JsonbToJsonbValue(json_texts(all, list_length(texts)), &value);
    return value;
}

// Whether it is interlock.seconds.
static bool is_duration(Oid type) {
    return type == GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("seconds"),
                                   ObjectIdGetDatum(own_schema()));
}

static JsonbValue json_of_duration(const char* name, Datum datum) {
    return json_text(duration_text(duration_argument(DatumGetIntervalP(datum), name)));
}

static JsonbValue json_of_datum(const char* name, Oid type, Datum datum) {
    JsonbValue value;
    switch (type) {
    case BOOLOID:
        return json_flag(DatumGetBool(datum));
    case INT4OID:
        return json_number(DatumGetInt32(datum));
    case NAMEARRAYOID:
    case TEXTARRAYOID:
        return json_of_texts(texts_of(type, datum));
    case JSONBOID:
        JsonbToJsonbValue(DatumGetJsonbP(datum), &value);
        return value;
    default:
        return is_duration(type) ? json_of_duration(name, datum)
                                 : json_text(print_value(type, datum));
    }
}

static JsonbValue default_of(const char* name, const Node* expression) {
    if (!IsA(expression, Const))
        elog(ERROR, "default of argument %s is no constant", name);
    const auto* constant = reinterpret_cast<const Const*>(expression);
    return constant->constisnull ? json_null()
                                 : json_of_datum(name, constant->consttype, constant->constvalue);
}

static List* defaults_of(HeapTuple function) {
    bool is_null;
    Datum defaults = SysCacheGetAttr(PROCOID, function, Anum_pg_proc_proargdefaults, &is_null);
    return is_null ? NIL : static_cast<List*>(stringToNode(TextDatumGetCString(defaults)));
}

KnownNames SettingArguments::names() const {
    auto** names = static_cast<const char**>(palloc(sizeof(char*) * (count + 1)));
    for (int i = 0; i < count; i++)
        names[i] = first[i].name;
    return {names, count};
}

SettingArguments arguments_of(const Mechanism& mechanism) {
    HeapTuple function = function_named(mechanism.enable);
    Oid* types;
    char** names;
    char* modes;
    int total = get_func_arg_info(function, &types, &names, &modes);
    List* defaults = defaults_of(function);
    int first_default = total - list_length(defaults);
    SettingArguments arguments = {};
    arguments.first = static_cast<SettingArgument*>(palloc0(sizeof(SettingArgument) * (total + 1)));
    for (int i = 1; i < total; i++) { // behind rel
        if (mechanism.key != nullptr && strcmp(names[i], mechanism.key) == 0) {
            arguments.key_type = types[i];
            continue;
        }
        SettingArgument* argument = &arguments.first[arguments.count++];
        *argument = {names[i], types[i], i >= first_default, json_null()};
        if (argument->has_default)
            argument->default_value = default_of(
                names[i], static_cast<const Node*>(list_nth(defaults, i - first_default)));
    }
    return arguments;
}

static JsonbValue typed_number(const char* path, const JsonbValue* value) {
    if (value->type == jbvNumeric) {
        char* end;
        errno = 0;
        int64 number = strtoll(scalar_text(*value), &end, 10);
        if (*end == '\0' && errno == 0 && number >= PG_INT32_MIN && number <= PG_INT32_MAX)
            return json_number(number);
    }
    refuse_setting(path, "must be an integer");
}

// A number is one of seconds.
static JsonbValue typed_duration(const char* path, const JsonbValue* value) {
    if (value->type != jbvString && value->type != jbvNumeric)
        refuse_setting(path, "must be an interval or a number of seconds");
    Datum interval;
    with_hint([&] { errhint("Member \"%s\" is an interval or a number of seconds.", path); },
              [&] { return read_seconds(scalar_text(*value), nullptr, &interval); });
    return json_of_duration(path, interval);
}

static JsonbValue typed_texts(const char* path, const JsonbValue* value) {
    if (value->type != jbvBinary || !JsonContainerIsArray(value->val.binary.data))
        refuse_setting(path, "must be an array");
    List* texts = NIL;
    each_element(value->val.binary.data, [&](const JsonbValue* element) {
        bool is_state = element->type == jbvNumeric || element->type == jbvBool;
        texts = lappend(texts, is_state ? scalar_text(*element) : text_at(path, element));
    });
    return json_of_texts(texts);
}

static JsonbValue typed_names(const char* path, const JsonbValue* value) {
    List* names = NIL;
    ListCell* cell;
    foreach (cell, texts_at(path, value))
        names = lappend(
            names, const_cast<char*>(typed_key(NAMEOID, static_cast<const char*>(lfirst(cell)))));
    return json_of_texts(names);
}

const char* typed_key(Oid type, const char* key) {
    if (type == TEXTOID)
        return key;
    Oid input, output, parameter;
    bool is_varlena;
    getTypeInputInfo(type, &input, &parameter);
    getTypeOutputInfo(type, &output, &is_varlena);
    return OidOutputFunctionCall(output, OidInputFunctionCall(input, pstrdup(key), parameter, -1));
}

JsonbValue typed_value(const char* path, Oid type, const JsonbValue* value) {
    if (value->type == jbvNull)
        return *value;
    switch (type) {
    case BOOLOID:
        if (value->type != jbvBool)
            refuse_setting(path, "must be true or false");
        return *value;
    case INT4OID:
        return typed_number(path, value);
    case NAMEARRAYOID:
        return typed_names(path, value);
    case TEXTARRAYOID:
        return typed_texts(path, value);
    case JSONBOID:
        if (value->type != jbvBinary)
            refuse_setting(path, "must be an object");
        return *value;
    default:
        return is_duration(type) ? typed_duration(path, value)
                                 : json_text(typed_key(type, text_at(path, value)));
    }
}

const char* sql_value(Oid type, const JsonbValue& value) {
    switch (value.type) {
    case jbvNull:
        return "NULL";
    case jbvBool:
    case jbvNumeric:
        return scalar_text(value);
    case jbvString:
        return quote_literal_cstr(scalar_text(value));
    default:
        break;
    }
    if (type == NAMEARRAYOID || type == TEXTARRAYOID)
        return array_literal(texts_at("", &value));
    Jsonb* json = to_json(value);
    return quote_literal_cstr(JsonbToCString(nullptr, &json->root, VARSIZE(json)));
}

} // namespace interlock::configure
