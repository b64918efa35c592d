#include "server/relation_lock.h"

namespace interlock::inline server {

static bool lock_all(List* relations, LOCKMODE mode) {
    ListCell* cell;
    foreach (cell, relations)
        if (!ConditionalLockRelationOid(lfirst_oid(cell), mode))
            return false;
    return true;
}

bool lock_without_waiting(Oid relid, LOCKMODE mode) {
    if (!ConditionalLockRelationOid(relid, mode))
        return false;
    Relation rel = try_relation_open(relid, NoLock);
    if (rel == nullptr)
        return true; // it is gone
    bool has_indexes = rel->rd_rel->relhasindex;
    bool locked = !has_indexes || lock_all(RelationGetIndexList(rel), mode);
    if (locked && rel->rd_rel->relispartition)
        locked = lock_all(get_partition_ancestors(relid), AccessShareLock);
    Oid toast = rel->rd_rel->reltoastrelid;
    relation_close(rel, NoLock);
    return locked && (!OidIsValid(toast) || lock_without_waiting(toast, mode));
}

} // namespace interlock::inline server
