// Roles that something of ours is granted to, by name; "public" stands for all.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

constexpr const char* kEverybody = "public";

// Raises 42704 when there is no such role.
void check_grantee(const char* role);

// Whether the user has the privileges of the role. False for a role that was dropped.
bool is_grantee(Oid user, const char* role);

} // namespace interlock::inline server
