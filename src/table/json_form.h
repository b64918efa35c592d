// How values of a type appear in JSON. Some appear as to_jsonb makes them: numbers, strings, arrays
// and objects. All others appear as the text of their output function.
//
// No cast to json is called. A type's own cast may lose a part of the value, and
// jsonb_populate_record cannot read its result back. So hstore and geometry are texts here. Only
// superusers can create output functions, so nothing here runs code of other roles.
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
    Oid base; // the base type of a domain
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

// The session keeps it until a type changes.
JsonForm json_form(Oid type);

} // namespace interlock::inline table
