// A column as the extension made it.
#pragma once

#include "server/server.h"

namespace interlock {

struct MadeColumn {
    const char* name;
    Oid type;
    bool required;        // NOT NULL
    char identity = '\0'; // attidentity
};

// Whether its owner has left it so. Any default will do, and any collation under which only equal
// bytes are equal.
bool is_unmodified(const MadeColumn& column, Form_pg_attribute attribute);

} // namespace interlock
