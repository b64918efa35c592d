// A column as the extension created it.
#pragma once

#include "server/server.h"

namespace interlock::inline table {

struct MadeColumn {
    const char* name;
    Oid type;
    bool required;        // NOT NULL
    char identity = '\0'; // attidentity
};

// Whether it is unchanged. Any default is allowed, and any collation under which only equal bytes
// are equal.
bool is_unmodified(const MadeColumn& column, Form_pg_attribute attribute);

} // namespace interlock::inline table
