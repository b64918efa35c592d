#include "table/subscription.h"

namespace interlock {

namespace {

// The owner of a subscription lists any tables there. It writes those alone on which it has rights.
bool may_write(Oid subscription, Oid relid) {
    HeapTuple tuple = SearchSysCache1(SUBSCRIPTIONOID, ObjectIdGetDatum(subscription));
    if (!HeapTupleIsValid(tuple))
        return false;
    Oid owner = reinterpret_cast<Form_pg_subscription>(GETSTRUCT(tuple))->subowner;
    ReleaseSysCache(tuple);
    return owns_relation(relid, owner) ||
           pg_class_aclcheck(relid, owner, ACL_INSERT) == ACLCHECK_OK;
}

bool has_subscription(Oid relid) {
    CatCList* found = SearchSysCacheList1(SUBSCRIPTIONRELMAP, ObjectIdGetDatum(relid));
    bool has_any = false;
    for (int i = 0; i < found->n_members && !has_any; i++) {
        HeapTuple tuple = &found->members[i]->tuple;
        has_any =
            may_write(reinterpret_cast<Form_pg_subscription_rel>(GETSTRUCT(tuple))->srsubid, relid);
    }
    ReleaseSysCacheList(found);
    return has_any;
}

} // namespace

bool is_subscribed(Oid relid) {
    if (has_subscription(relid))
        return true;
    if (!get_rel_relispartition(relid))
        return false;
    ListCell* cell;
    foreach (cell, get_partition_ancestors(relid))
        if (has_subscription(lfirst_oid(cell)))
            return true;
    return false;
}

} // namespace interlock
