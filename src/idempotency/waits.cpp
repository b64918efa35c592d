// Who waits for the end of a committed claim, for view blocking.

#include "idempotency/waits.h"

#include "idempotency/wait.h"
#include "server/waits.h"

namespace interlock::idempotency {

static bool may_see_name(const ClaimWaiter& waiter) {
    return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
           has_privs_of_role(GetUserId(), waiter.role);
}

static void report(List** waits, const ClaimWaiter& waiter) {
    Wait wait;
    wait.pid = waiter.pid;
    wait.kind = "idempotency_claim";
    wait.name = may_see_name(waiter) ? pstrdup(waiter.name) : nullptr;
    wait.since = waiter.wait.since;
    Blocker blocker;
    blocker.until = waiter.wait.until;
    blocker.what = "claim";
    wait.add(blocker);
    report_wait(waits, wait);
}

void report_claim_waits(List** waits) {
    (void)for_each_claim_waiter([waits](const ClaimWaiter& waiter) { report(waits, waiter); });
}

} // namespace interlock::idempotency
