// Writers: who a transaction writes as, by a name that is no database role, so that it works for
// applications whose sessions share one role.
//
// set_writer() says it for the rest of the transaction, or up to the rollback of a savepoint. Only
// a member of a role that the writer was granted to may (42501), superusers always.
//
// Said inside a SECURITY DEFINER function it counts inside that function only: it counts while the
// current user, or the one outside of all such functions, is the one who said it.
#pragma once

#include "server.h"

namespace interlock {

constexpr int kWriterBytes = 256;

struct Writer {
    const char* name; // null: nobody
    bool force;       // may write what others own
};

// The pointer is good until the writer is set again.
Writer current_writer();

// Raises 22023 when a writer cannot be called that.
const char* check_writer(const char* name);

// Whether the writer has been granted to any role.
bool writer_is_granted(const char* name);

void define_writer_settings();

} // namespace interlock
