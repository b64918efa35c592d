#include "server/caller.h"

namespace interlock::inline server {

Oid session_role() {
    Oid user;
    int context;
    GetUserIdAndSecContext(&user, &context);
    bool is_lent = (context & (SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION)) != 0;
    return is_lent ? InvalidOid : GetSessionUserId();
}

bool acts_for(Oid role) {
    if (has_privs_of_role(GetUserId(), role))
        return true;
    Oid session = session_role();
    return OidIsValid(session) && has_privs_of_role(session, role);
}

} // namespace interlock::inline server
