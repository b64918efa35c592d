// Writers: who a transaction writes as, by a name that is no database role, so that it works for
// applications whose sessions share one role.
//
// set_writer() says it for the rest of the transaction, or up to the rollback of a savepoint. Only
// a member of a role that the writer was granted to may (42501), superusers always.
//
// Each user has a writer of his own, so that a SECURITY DEFINER function neither gives its writer
// to the caller nor takes the caller's away: what the current user said counts, else what the user
// outside of all such functions said.
#pragma once

#include "server/server.h"

namespace interlock {

constexpr int kWriterBytes = 256;

struct Writer {
    const char* name; // null: nobody
    bool force;       // may write what others own
};

// In the current memory context.
Writer current_writer();

// Raises 22023 when a writer cannot be called that.
const char* check_writer(const char* name);

// Whether the writer has been granted to any role.
bool writer_is_granted(const char* name);

void define_writer_settings();

} // namespace interlock
