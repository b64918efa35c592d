// Writers: a transaction writes under a name that is not a database role. This is for applications
// whose sessions share one role.
//
// set_writer() sets the writer for the rest of the transaction, or until a savepoint is rolled
// back. Only a member of a role to which the writer was granted may set it (42501). Superusers
// always may.
//
// A role can have a default writer for transactions that set none.
//
// Each user has a separate writer. So a SECURITY DEFINER function neither passes its writer to the
// caller nor replaces the caller's writer. The order is: the writer set by the current user, the
// writer set outside of all such functions, then the defaults of these two.
#pragma once

#include "server/server.h"

namespace interlock::ownership {

struct Writer {
    const char* name; // null: none
    bool force;       // may write columns of other writers
    const char* from; // "set_writer", or "role" for a default; a constant
};

// In the current memory context.
Writer current_writer();

// Returns the name. Raises 22023 if a writer cannot have it.
const char* check_writer(const char* name);

// Warns if the writer is granted to no role.
void warn_if_ungranted(const char* writer);

void define_writer_settings();

} // namespace interlock::ownership
