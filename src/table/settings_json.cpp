#include "table/settings_json.h"

#include "server/nearest.h"
#include "server/notify.h"

namespace interlock::inline table {

// --- Reading -------------------------------------------------------------------------------------

void refuse_setting(const char* path, const char* rule, const char* hint) {
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("settings: \"%s\" %s", path, rule),
             hint != nullptr ? errhint("%s", hint) : 0));
}

static const char* nearest_in_words(const char* name, const KnownNames& known) {
    Nearest nearest(name);
    for (int i = 0; i < known.count; i++)
        nearest.offer(known.names[i]);
    return nearest.in_words();
}

static const char* joined(const KnownNames& known) {
    StringInfoData text;
    initStringInfo(&text);
    for (int i = 0; i < known.count; i++)
        appendStringInfo(&text, "%s%s", i > 0 ? ", " : "", known.names[i]);
    return text.data;
}

void refuse_unknown(const char* path, const char* name, const KnownNames& known) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("settings: unknown member \"%s\"", path_to(path, name)),
                    errhint("%sMembers are %s.", nearest_in_words(name, known), joined(known))));
}

void require_known(const char* path, const char* name, const KnownNames& known) {
    for (int i = 0; i < known.count; i++)
        if (strcmp(known.names[i], name) == 0)
            return;
    refuse_unknown(path, name, known);
}

const char* path_to(const char* path, const char* name) {
    return path[0] == '\0' ? name : psprintf("%s.%s", path, name);
}

JsonbContainer* object_at(const char* path, const JsonbValue* value) {
    if (value->type == jbvNull)
        return nullptr;
    if (value->type == jbvBool && value->val.boolean)
        return &JsonObject().finish()->root;
    if (value->type != jbvBinary || !JsonContainerIsObject(value->val.binary.data))
        refuse_setting(path, "must be an object, true for an empty one, or null to remove it");
    return value->val.binary.data;
}

JsonbValue* member_of(JsonbContainer* object, const char* name) {
    return getKeyJsonValueFromContainer(object, name, static_cast<int>(strlen(name)), nullptr);
}

char* text_at(const char* path, const JsonbValue* value) {
    if (value->type != jbvString)
        refuse_setting(path, "must be a string");
    return pnstrdup(value->val.string.val, value->val.string.len);
}

List* texts_at(const char* path, const JsonbValue* value) {
    if (value->type != jbvBinary || !JsonContainerIsArray(value->val.binary.data))
        refuse_setting(path, "must be an array of strings");
    List* texts = NIL;
    each_element(value->val.binary.data, [&](const JsonbValue* element) {
        if (element->type != jbvString)
            refuse_setting(path, "must be an array of strings");
        texts = lappend(texts, text_at(path, element));
    });
    return texts;
}

// --- Writing -------------------------------------------------------------------------------------

JsonbValue json_null() {
    JsonbValue value = {};
    value.type = jbvNull;
    return value;
}

JsonbValue json_text(const char* text) {
    if (text == nullptr)
        return json_null();
    JsonbValue value = {};
    value.type = jbvString;
    value.val.string.val = const_cast<char*>(text);
    value.val.string.len = static_cast<int>(strlen(text));
    return value;
}

JsonbValue json_flag(bool flag) {
    JsonbValue value = {};
    value.type = jbvBool;
    value.val.boolean = flag;
    return value;
}

JsonbValue json_number(int64 number) {
    JsonbValue value = {};
    value.type = jbvNumeric;
    value.val.numeric = int64_to_numeric(number);
    return value;
}

void JsonObject::add(const char* name, const JsonbValue& value) {
    JsonbValue member = json_text(name);
    builder_.push(WJB_KEY, &member);
    builder_.push(WJB_VALUE, &value);
}

void JsonObject::add(const char* name, Jsonb* json) {
    JsonbValue value = json_null();
    if (json != nullptr)
        JsonbToJsonbValue(json, &value);
    add(name, value);
}

void JsonObject::add_texts(const char* name, const char* const* texts, int count) {
    add(name, json_texts(texts, count));
}

Jsonb* json_texts(const char* const* texts, int count) {
    JsonBuilder builder;
    builder.push(WJB_BEGIN_ARRAY);
    for (int i = 0; i < count; i++) {
        JsonbValue value = json_text(texts[i]);
        builder.push(WJB_ELEM, &value);
    }
    return builder.finish(WJB_END_ARRAY);
}

Jsonb* with_stored_notify(Jsonb* object) {
    JsonObject stored;
    each_member(&object->root, [&](const char* name, const JsonbValue* value) {
        Notify notify;
        if (strcmp(name, "notify") == 0 && value->type == jbvString &&
            parse_notify(pnstrdup(value->val.string.val, value->val.string.len), &notify))
            stored.add(name, notify_name(notify));
        else
            stored.add(name, *value);
    });
    return stored.finish();
}

static int compare_texts(const ListCell* left, const ListCell* right) {
    return strcmp(static_cast<const char*>(lfirst(left)), static_cast<const char*>(lfirst(right)));
}

static void write_value(StringInfo text, const JsonbValue* value);

static void write_array(StringInfo text, JsonbContainer* array) {
    List* elements = NIL;
    each_element(array, [&](const JsonbValue* value) {
        StringInfoData element;
        initStringInfo(&element);
        write_value(&element, value);
        elements = lappend(elements, element.data);
    });
    list_sort(elements, compare_texts);
    const char* before = nullptr;
    ListCell* cell;
    appendStringInfoChar(text, '[');
    foreach (cell, elements) {
        auto* element = static_cast<const char*>(lfirst(cell));
        if (before == nullptr || strcmp(before, element) != 0)
            appendStringInfo(text, "%s%s", before != nullptr ? "," : "", element);
        before = element;
    }
    appendStringInfoChar(text, ']');
}

static void write_object(StringInfo text, JsonbContainer* object) {
    bool is_first = true;
    appendStringInfoChar(text, '{');
    each_member(object, [&](const char* name, const JsonbValue* value) {
        if (!is_first)
            appendStringInfoChar(text, ',');
        is_first = false;
        escape_json(text, name);
        appendStringInfoChar(text, ':');
        write_value(text, value);
    });
    appendStringInfoChar(text, '}');
}

static void write_value(StringInfo text, const JsonbValue* value) {
    check_stack_depth();
    if (value->type == jbvBinary) {
        if (JsonContainerIsArray(value->val.binary.data))
            write_array(text, value->val.binary.data);
        else
            write_object(text, value->val.binary.data);
        return;
    }
    Jsonb* scalar = to_json(*value);
    JsonbToCString(text, &scalar->root, VARSIZE(scalar));
}

Jsonb* with_sorted_arrays(Jsonb* json) {
    JsonbValue value;
    JsonbToJsonbValue(json, &value);
    StringInfoData text;
    initStringInfo(&text);
    write_value(&text, &value);
    return DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(text.data)));
}

bool same_json(Jsonb* left, Jsonb* right) {
    return compareJsonbContainers(&with_sorted_arrays(left)->root,
                                  &with_sorted_arrays(right)->root) == 0;
}

bool same_value(const JsonbValue& left, const JsonbValue& right) {
    return same_json(to_json(left), to_json(right));
}

Jsonb* to_json(const JsonbValue& value) {
    JsonbValue copy = value;
    return JsonbValueToJsonb(&copy);
}

char* duration_text(int64 microseconds) {
    StringInfoData text;
    initStringInfo(&text);
    int64 days = microseconds / USECS_PER_DAY;
    int64 rest = microseconds % USECS_PER_DAY;
    if (days > 0)
        appendStringInfo(&text, "%d day%s", static_cast<int>(days), days > 1 ? "s" : "");
    if (days > 0 && rest > 0)
        appendStringInfoChar(&text, ' ');
    if (days == 0 || rest > 0)
        appendStringInfo(&text, "%02d:%02d:%02d", static_cast<int>(rest / USECS_PER_HOUR),
                         static_cast<int>(rest / USECS_PER_MINUTE % 60),
                         static_cast<int>(rest / USECS_PER_SEC % 60));
    if (rest % USECS_PER_SEC > 0)
        appendStringInfo(&text, ".%06d", static_cast<int>(rest % USECS_PER_SEC));
    return text.data;
}

char* array_literal(const List* texts) {
    int count = list_length(texts);
    auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * (count + 1)));
    for (int i = 0; i < count; i++)
        values[i] = CStringGetTextDatum(static_cast<const char*>(list_nth(texts, i)));
    ArrayType* array = construct_array(values, count, TEXTOID, -1, false, TYPALIGN_INT);
    return quote_literal_cstr(OidOutputFunctionCall(F_ARRAY_OUT, PointerGetDatum(array)));
}

} // namespace interlock::inline table
