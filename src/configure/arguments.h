// The arguments of a concept's enabling function, read from the catalog. Their names are the
// members of the settings. Their types and defaults say which values these can have.
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
    SettingArgument* first; // all arguments but rel and the key
    int count;
    Oid key_type; // InvalidOid: there is no key

    const SettingArgument* begin() const { return first; }
    const SettingArgument* end() const { return first + count; }
    KnownNames names() const;
};

SettingArguments arguments_of(const Mechanism& mechanism);

// The value in the form of the argument's type. Raises 22023 if it cannot be converted, and 22007
// if it is no interval. JSON null stays null.
JsonbValue typed_value(const char* path, Oid type, const JsonbValue* value);

// The same for the key of an instance.
const char* typed_key(Oid type, const char* key);

// A typed value as SQL text.
const char* sql_value(Oid type, const JsonbValue& value);

} // namespace interlock::configure
