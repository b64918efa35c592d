#include "server/lock_status.h"

namespace interlock::inline server {

LockStatus lock_status() {
    const LockData* data = GetLockStatusData();
    LockStatus status = {data->locks, data->nelements, NIL};
    for (const LockInstanceData& lock : status)
        if (lock.pid == 0 && lock.locktag.locktag_type == LOCKTAG_TRANSACTION && lock.holdMask != 0)
            status.prepared = lappend(status.prepared, const_cast<LockInstanceData*>(&lock));
    return status;
}

// Its subtransactions hold later numbers.
TransactionId prepared_transaction(const LockStatus& status, const LockInstanceData& lock) {
    TransactionId first = InvalidTransactionId;
    ListCell* cell;
    foreach (cell, status.prepared) {
        auto* own = static_cast<const LockInstanceData*>(lfirst(cell));
        TransactionId number = own->locktag.locktag_field1;
        if (has_same_transaction(*own, lock) &&
            (first == InvalidTransactionId || TransactionIdPrecedes(number, first)))
            first = number;
    }
    return first;
}

Oid role_of_process(int pid) {
    const PGPROC* process = BackendPidGetProc(pid);
    return process != nullptr ? process->roleId : InvalidOid;
}

} // namespace interlock::inline server
