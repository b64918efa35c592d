// Replacing our triggers without losing what ALTER TABLE ... DISABLE or ENABLE ALWAYS TRIGGER said
// of them: the server makes each new trigger an ordinary one.
#pragma once

#include "server/server.h"

namespace interlock {

// Whether a trigger of the table, and each clone of it in a partition, is enabled otherwise than a
// new one. Call it inside with_spi.
List* trigger_states(Oid relid, const char* name);

// Makes them so again; what is gone is left out.
void restore_trigger_states(const char* name, const List* states);

// Runs a CREATE OR REPLACE TRIGGER. Call it inside with_spi.
void replace_trigger(Oid relid, const char* name, const char* command);

} // namespace interlock
