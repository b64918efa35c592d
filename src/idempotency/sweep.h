// The sweeper's part in idempotency: expired keys are deleted, PENDING ones too once they are that
// old. A live claim expires long after its deadline, so it is never touched.
#pragma once

#include "idempotency/idempotency.h"

namespace interlock {

// Expired keys are swept together: nobody misses them.
constexpr TimestampTz kKeySweepGap = USECS_PER_MINUTE;

// Deletes up to max_rows expired keys as the table's owner; returns how many. Raises 42501 when
// that would run what others have put on the table.
int64 delete_expired_keys(int32 max_rows);

// The same key by key, for when a batch fails: a key that cannot be deleted, because something
// refers to it, or not in time, is left for an hour. Only for the worker, whose statement timeout
// it uses. Returns how many it went through until stop_at.
int delete_one_by_one(int32 max_rows, TimestampTz stop_at);

// When the first of those left expires, DT_NOEND if none is left.
TimestampTz first_expiry();

} // namespace interlock
