// The default writer of a role, for transactions that set no writer. It is for clients in
// autocommit mode.
//
// It belongs to the role itself and not to its members, because a role can be a member of two roles
// with a default writer. A session notices a change when it next opens a table, as it notices a
// change of a table.
#pragma once

#include "server/server.h"

namespace interlock::ownership {

constexpr int kWriterBytes = 256; // the longest name of a writer

// The default writer, valid until the next call. Null if the role has none.
const char* default_writer(Oid user);

// The stored default writer of the role with that name, in the current context.
const char* stored_default_writer(const char* role);

// To be called after a grant was written.
void forget_default_writers();

} // namespace interlock::ownership
