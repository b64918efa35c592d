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

// Whether the column is unchanged. It may have any default. It may have any collation under which
// only equal bytes are equal.
bool is_unmodified(const MadeColumn& column, Form_pg_attribute attribute);

} // namespace interlock::inline table
