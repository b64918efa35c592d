// What happens to statements that write a row without comparing its version. The owner of the table
// declares it, for all columns or for the columns that several writers share.
#pragma once

#include "server/server.h"

namespace interlock::inline server {
class Arguments;
} // namespace interlock::inline server

namespace interlock::inline statement {

// The mildest first.
enum class BlindUpdates : uint8 { kAllow, kWarn, kReject };

const char* blind_updates_name(BlindUpdates mode);

// Returns false if it is no such word. Raises nothing.
bool parse_blind_updates(const char* name, BlindUpdates* mode);

// Argument n, named "blind_updates". Raises 22023 for another word. Raises 55000, as
// require_all_statements() does, for a word that needs the library to know all statements.
BlindUpdates blind_updates_argument(const Arguments& arguments, int n);

} // namespace interlock::inline statement
