// The writer of a role whose transactions set none: for clients in autocommit mode.
//
// It belongs to the role itself and not to its members: a role can be a member of two. A
// session finds a change of it as it finds that of a table: when it next opens one.
#pragma once

#include "server/server.h"

namespace interlock::ownership {

constexpr int kWriterBytes = 256; // the longest name of a writer

// Null when the role has none; else valid until the next call.
const char* default_writer(Oid user);

// As it is stored now, for a role of that name; in the current context.
const char* stored_default_writer(const char* role);

// Call after writing a grant.
void forget_default_writers();

} // namespace interlock::ownership
