#include "lease/role.h"

namespace interlock {

Oid session_role() {
    Oid user;
    int context;
    GetUserIdAndSecContext(&user, &context);
    bool is_lent = (context & (SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION)) != 0;
    return is_lent ? InvalidOid : GetSessionUserId();
}

Oid role_of_token(LeaseDatabase* database, const LeaseKey& key, int64 token) {
    auto is_given_to = [&](Oid role) {
        return OidIsValid(role) &&
               is_genuine(database->secret, {key.database, role, key.bytes, key.length}, token);
    };
    Oid user = GetUserId();
    Oid session = session_role();
    Oid role = is_given_to(user) ? user : is_given_to(session) ? session : InvalidOid;
    if (OidIsValid(role))
        return accept_former_token(database, role, true) ? role : InvalidOid;
    accept_former_token(database, user, false);
    if (OidIsValid(session) && session != user)
        accept_former_token(database, session, false);
    return InvalidOid;
}

bool acts_for(Oid role) {
    if (has_privs_of_role(GetUserId(), role))
        return true;
    Oid session = session_role();
    return OidIsValid(session) && has_privs_of_role(session, role);
}

} // namespace interlock
