// Writers: a transaction writes under a name that is not a database role, for applications whose
// sessions share one role.
//
// set_writer() sets it for the rest of the transaction, or up to the rollback of a savepoint. Only
// a member of a role that the writer was granted to may (42501), superusers always.
//
// A role can have a default writer, as which it writes where its transaction has set none.
//
// Each user has a separate writer, so that a SECURITY DEFINER function neither passes its writer to
// the caller nor replaces the caller's: the writer set by the current user counts, else that set
// outside of all such functions; then the defaults of both, in this order.
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

// Raises 22023 when a writer cannot be called that.
const char* check_writer(const char* name);

// Warns when the writer has not been granted to any role.
void warn_if_ungranted(const char* writer);

void define_writer_settings();

} // namespace interlock::ownership
