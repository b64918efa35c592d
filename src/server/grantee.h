// Roles, by name, to which the extension has granted something. "public" stands for all roles.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

constexpr const char* kEverybody = "public";

// Raises 42704 if there is no such role.
void check_grantee(const char* role);

// Whether the user has the privileges of the role. False for a role that was dropped.
bool is_grantee(Oid user, const char* role);

} // namespace interlock::inline server
