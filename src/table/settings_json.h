// Settings as JSON: reading what a user passes, and writing what triggers have.
#pragma once

#include "server/json_builder.h"

namespace interlock::inline table {

// --- Reading -------------------------------------------------------------------------------------

// Raises 22023: member "path" and the rule, such as "must be a boolean".
[[noreturn]] void refuse_setting(const char* path, const char* rule, const char* hint = nullptr);

// Raises 22023 for an unknown member. The hint is the nearest of the known names. An empty path
// means the settings themselves.
struct KnownNames {
    const char* const* names;
    int count;
};
[[noreturn]] void refuse_unknown(const char* path, const char* name, const KnownNames& known);
void require_known(const char* path, const char* name, const KnownNames& known);

// path.name
const char* path_to(const char* path, const char* name);

// The object. True becomes an empty object, and JSON null becomes null. Raises 22023 for other
// values.
JsonbContainer* object_at(const char* path, const JsonbValue* value);

// The member, or null if there is none.
JsonbValue* member_of(JsonbContainer* object, const char* name);

// A text. Raises 22023 for other values.
char* text_at(const char* path, const JsonbValue* value);
List* texts_at(const char* path, const JsonbValue* value); // of an array

// Calls visit(name, value) for each member of an object.
template <typename Visit>
void each_member(JsonbContainer* object, Visit&& visit) {
    JsonbIterator* iterator = JsonbIteratorInit(object);
    JsonbValue value;
    const char* name = "";
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE;) {
        CHECK_FOR_INTERRUPTS();
        if (token == WJB_KEY)
            name = pnstrdup(value.val.string.val, value.val.string.len);
        else if (token == WJB_VALUE)
            visit(name, const_cast<const JsonbValue*>(&value));
    }
}

// Calls visit(value) for each element of an array.
template <typename Visit>
void each_element(JsonbContainer* array, Visit&& visit) {
    JsonbIterator* iterator = JsonbIteratorInit(array);
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE;) {
        CHECK_FOR_INTERRUPTS();
        if (token == WJB_ELEM)
            visit(const_cast<const JsonbValue*>(&value));
    }
}

// --- Writing -------------------------------------------------------------------------------------

JsonbValue json_null();
JsonbValue json_text(const char* text); // null: JSON null
JsonbValue json_flag(bool flag);
JsonbValue json_number(int64 number);

// An object that is being built.
class JsonObject {
public:
    JsonObject() { builder_.push(WJB_BEGIN_OBJECT); }

    void add(const char* name, const JsonbValue& value);
    void add(const char* name, const char* text) { add(name, json_text(text)); }
    void add(const char* name, Jsonb* json); // an object or array; null: JSON null
    void add_flag(const char* name, bool flag) { add(name, json_flag(flag)); }
    void add_number(const char* name, int64 number) { add(name, json_number(number)); }
    void add_texts(const char* name, const char* const* texts, int count);

    Jsonb* finish() { return builder_.finish(WJB_END_OBJECT); }

private:
    JsonBuilder builder_;
};

// The object with the word that a trigger stores as its member "notify" (server/notify.h).
Jsonb* with_stored_notify(Jsonb* object);

Jsonb* json_texts(const char* const* texts, int count);

// The object with sorted arrays without duplicates. Arrays in settings are sets. Arrays in which
// the order counts are inside texts.
Jsonb* with_sorted_arrays(Jsonb* json);
bool same_json(Jsonb* left, Jsonb* right);
bool same_value(const JsonbValue& left, const JsonbValue& right);

// A copy of the value as Jsonb. The value itself is unchanged.
Jsonb* to_json(const JsonbValue& value);

// A duration as interval_in() reads it under any IntervalStyle: 2 days 00:05:00.
char* duration_text(int64 microseconds);

// An array of names or texts as an SQL literal.
char* array_literal(const List* texts);

} // namespace interlock::inline table
