#include "idempotency/errors.h"

#include "idempotency/grant.h"
#include "idempotency/table.h"
#include "server/error.h"

namespace interlock::idempotency {

void raise_claim_lost(const IdempotencyKey& key, int64 token) {
    require_scope(key.scope); // there may have been a wait
    count(line_of(key), Counter::kCalls);
    count(line_of(key), Counter::kRefusals);
    IdempotencyRow row = read_idempotency_row(key, {});
    char given[32];
    snprintf(given, sizeof(given), INT64_FORMAT, token);
    ereport(ERROR,
            (errcode(kClaimLost),
             errmsg("the claim of idempotency key \"%s\" is lost", TextDatumGetCString(key.key)),
             errdetail_internal("%s", json_object({{"scope", TextDatumGetCString(key.scope)},
                                                   {"key", TextDatumGetCString(key.key)},
                                                   {"token", nullptr, given},
                                                   {"status", !row.found      ? nullptr
                                                              : row.completed ? "completed"
                                                              : row.failed    ? "failed"
                                                                              : "pending"}})),
             errhint("Another worker took the claim over, or it has ended. Roll back the work, and "
                     "do not repeat it.")));
}

} // namespace interlock::idempotency
