#include "execution/row_lock.h"

namespace interlock::inline execution {

static const char* strength_clause(RowStrength strength) {
    switch (strength) {
    case RowStrength::kKeyShare:
        return " FOR KEY SHARE";
    case RowStrength::kShare:
        return " FOR SHARE";
    case RowStrength::kNoKeyUpdate:
        return " FOR NO KEY UPDATE";
    case RowStrength::kUpdate:
        return " FOR UPDATE";
    default:
        return "";
    }
}

void prevent_in_parallel_mode(RowLock lock) {
    if (lock.strength != RowStrength::kNone)
        PreventCommandIfParallelMode("SELECT FOR UPDATE");
}

void add_row_lock(Statement* statement, RowLock lock) {
    statement->add("%s", strength_clause(lock.strength));
    if (lock.wait != RowWait::kWait)
        statement->add("%s", lock.wait == RowWait::kNowait ? " NOWAIT" : " SKIP LOCKED");
}

AttrNumber row_lock_number(RowLock lock) {
    return static_cast<AttrNumber>(static_cast<int>(lock.strength) * 4 +
                                   static_cast<int>(lock.wait));
}

} // namespace interlock::inline execution
