// Frees the counters of a database when DROP DATABASE commits.

#include "escrow/memory.h"

namespace interlock::escrow {

static Oid dropped = InvalidOid; // by this transaction
static object_access_hook_type next_hook = nullptr;

static void note_drop(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id,
                      void* argument) {
    if (next_hook != nullptr)
        next_hook(access, class_id, object_id, sub_id, argument);
    if (access == OAT_DROP && class_id == DatabaseRelationId)
        dropped = object_id;
}

static void end_transaction(XactEvent event, void*) {
    if (!OidIsValid(dropped))
        return;
    if (event == XACT_EVENT_COMMIT)
        drop_entries_of(dropped);
    if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT)
        dropped = InvalidOid;
}

void watch_dropped_databases() {
    next_hook = object_access_hook;
    object_access_hook = note_drop;
    RegisterXactCallback(end_transaction, nullptr);
}

} // namespace interlock::escrow
