// The treatment of statements that write a row without comparing its version, as the owner of the
// table has declared it: for all of its columns, or for those that writers share.
#pragma once

#include "server/server.h"

namespace interlock::inline server {
class Arguments;
} // namespace interlock::inline server

namespace interlock::inline statement {

// From the mildest.
enum class BlindUpdates : uint8 { kAllow, kWarn, kReject };

const char* blind_updates_name(BlindUpdates mode);

// False when it is none; nothing is raised.
bool parse_blind_updates(const char* name, BlindUpdates* mode);

// Argument n, named "blind_updates": 22023 for another word, and 55000 as require_all_statements()
// for one that acts on statements, which must then be known.
BlindUpdates blind_updates_argument(const Arguments& arguments, int n);

} // namespace interlock::inline statement
