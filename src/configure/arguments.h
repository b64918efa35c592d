// The arguments of a concept's enabling function, as the catalog has them: their names are the
// members of the settings, and their types and defaults say which values those have.
#pragma once

#include "table/mechanism.h"
#include "table/settings_json.h"

namespace interlock::configure {

struct SettingArgument {
    const char* name;
    Oid type;
    bool has_default;
    JsonbValue default_value;
};

struct SettingArguments {
    SettingArgument* first; // without rel and the key
    int count;
    Oid key_type; // InvalidOid without a key

    const SettingArgument* begin() const { return first; }
    const SettingArgument* end() const { return first + count; }
    KnownNames names() const;
};

SettingArguments arguments_of(const Mechanism& mechanism);

// The value as the argument's type has it; 22023 when it is none, 22007 for no interval. JSON null
// stays.
JsonbValue typed_value(const char* path, Oid type, const JsonbValue* value);

// The key of an instance, likewise.
const char* typed_key(Oid type, const char* key);

// A typed value as SQL.
const char* sql_value(Oid type, const JsonbValue& value);

} // namespace interlock::configure
