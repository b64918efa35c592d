#include "server/grantee.h"

namespace interlock::inline server {

void check_grantee(const char* role) {
    if (strcmp(role, kEverybody) != 0)
        get_role_oid(role, false);
}

bool is_grantee(Oid user, const char* role) {
    if (strcmp(role, kEverybody) == 0)
        return true;
    Oid oid = get_role_oid(role, true);
    return OidIsValid(oid) && has_privs_of_role(user, oid);
}

} // namespace interlock::inline server
