// Replaces the extension's triggers and keeps ALTER TABLE ... DISABLE or ENABLE ALWAYS TRIGGER. The
// server creates each new trigger as an ordinary one.
#pragma once

#include "server/server.h"

namespace interlock::inline table {

// The triggers of the table and their clones in partitions whose tgenabled differs from that of a
// new trigger. Call it inside with_spi.
List* trigger_states(Oid relid, const char* name);

// Restores these states. Triggers that were dropped are skipped.
void restore_trigger_states(const char* name, const List* states);

// Drops the trigger if it exists. Call it inside with_spi.
void drop_trigger(Oid relid, const char* table, const char* name);

// Runs a CREATE OR REPLACE TRIGGER. Call it inside with_spi.
void replace_trigger(Oid relid, const char* name, const char* command);

} // namespace interlock::inline table
