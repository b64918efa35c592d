// How the values of a type appear in JSON: as numbers, strings, arrays and objects as to_jsonb
// makes them, and all others as the text of their output function.
//
// No cast to json is called: a type's own cast may lose a part of the value, and
// jsonb_populate_record reads no value back that it has made. Hence hstore and geometry are texts
// here. Output functions belong to superusers, so that nothing here runs code of others.
#pragma once

#include "server/stable_text.h"

namespace interlock::inline table {

enum class JsonKind : uint8 {
    kBoolean,
    kInteger,
    kNumeric,
    kFloat,
    kString, // of a type that is stored as its text
    kTime,   // a date, or a timestamp
    kJson,
    kJsonb,
    kArray,
    kObject,
    kText // what the output function prints
};

struct JsonForm {
    Oid type; // as asked for
    Oid base; // below any domain
    JsonKind kind;
    Oid output;
    int16 length;
    Oid element; // of an array, and
    JsonKind element_kind;
    int16 element_length;
    bool element_by_value;
    char element_align;
    Printing prints_by;
};

// Kept by the session until a type changes.
JsonForm json_form(Oid type);

} // namespace interlock::inline table
