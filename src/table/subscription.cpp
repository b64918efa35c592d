#include "table/subscription.h"

namespace interlock {

namespace {

bool has_subscription(Oid relid) {
    CatCList* found = SearchSysCacheList1(SUBSCRIPTIONRELMAP, ObjectIdGetDatum(relid));
    bool has_any = found->n_members > 0;
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
