#include "lease/token_role.h"

namespace interlock::lease {

namespace {

// Roles that were granted to the caller, directly or not. A guess of a token is right for each of
// them with the same probability, so there are not many.
struct Memberships {
    Oid roles[8];
    int count;
};

} // namespace

static bool has(const Memberships& granted, Oid role) {
    for (int i = 0; i < granted.count; i++)
        if (granted.roles[i] == role)
            return true;
    return false;
}

static void add_granted_to(Oid member, Memberships* granted) {
    CatCList* list = SearchSysCacheList1(AUTHMEMMEMROLE, ObjectIdGetDatum(member));
    for (int i = 0; i < list->n_members; i++) {
        HeapTuple tuple = &list->members[i]->tuple;
        Oid role = reinterpret_cast<Form_pg_auth_members>(GETSTRUCT(tuple))->roleid;
        if (granted->count < static_cast<int>(lengthof(granted->roles)) && !has(*granted, role))
            granted->roles[granted->count++] = role;
    }
    ReleaseCatCacheList(list);
}

// Those that the caller has the privileges of.
static Memberships memberships_of(Oid user, Oid session) {
    Memberships granted = {};
    add_granted_to(user, &granted);
    if (OidIsValid(session) && session != user)
        add_granted_to(session, &granted);
    for (int i = 0; i < granted.count; i++)
        add_granted_to(granted.roles[i], &granted);
    int count = granted.count;
    granted.count = 0;
    for (int i = 0; i < count; i++)
        if (acts_for(granted.roles[i]))
            granted.roles[granted.count++] = granted.roles[i];
    return granted;
}

// A role with too many wrong tokens has no guesses for the roles that it is a member of, either.
static bool accepts_member(LeaseDatabase* database, Oid role) {
    Oid session = session_role();
    return accept_former_token(database, GetUserId(), true) &&
           (!OidIsValid(session) || accept_former_token(database, session, true)) &&
           accept_former_token(database, role, true);
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
    Memberships granted = memberships_of(user, session);
    for (int i = 0; i < granted.count; i++)
        if (is_given_to(granted.roles[i]))
            return accepts_member(database, granted.roles[i]) ? granted.roles[i] : InvalidOid;
    accept_former_token(database, user, false);
    if (OidIsValid(session) && session != user)
        accept_former_token(database, session, false);
    return InvalidOid;
}

} // namespace interlock::lease
