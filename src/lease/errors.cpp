#include "lease/errors.h"

#include "lease/token_role.h"
#include "server/error.h"
#include "table/relation.h"

namespace interlock::lease {

// Of a lease that is the caller's; what is not does not exist.
static const char* why_not_held(const LeaseKey& key, int64 token) {
    const char* why = "gone";
    with_own_lease(key, token, LW_SHARED, [&](Ref ref) {
        if (ref != 0)
            why = lease_at(ref)->is_given_back() ? "ended" : "expired";
    });
    return why;
}

void raise_not_held(const LeaseKey& key, int64 token) {
    char* name = pnstrdup(key.bytes, key.length);
    ereport(
        ERROR,
        (errcode(kLeaseNotHeld), errmsg("lease \"%s\" is not held with this token", name),
         errdetail_internal("%s", json_object({{"key", name},
                                               {"token", nullptr, psprintf(INT64_FORMAT, token)},
                                               {"state", why_not_held(key, token)}})),
         errhint(
             "The lease has expired, or was released or broken. Roll back: another client may have "
             "it, as interlock.lease_of(key) shows. After a crash, renew the lease first.")));
}

void raise_lease_needed(Relation rel, const char* key) {
    const char* table = RelationGetRelationName(rel);
    ereport(ERROR,
            (errcode(kLeaseNotHeld),
             key != nullptr ? errmsg("writing to table \"%s\" needs lease \"%s\"", table, key)
                            : errmsg("writing to table \"%s\" needs a lease", table),
             errdetail_internal("%s", json_object({{"table", shown_name(rel)}, {"key", key}})),
             errhint("Acquire this lease, or a lease on a path above it, in mode exclusive. Call "
                     "interlock.assert_lease in the transaction that writes.")));
}

} // namespace interlock::lease
