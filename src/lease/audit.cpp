#include "lease/audit.h"

#include "lease/pinner.h"
#include "table/own_table.h"
#include "table/restricted.h"
#include "table/subscription.h"

namespace interlock::lease {

void audit_break(const BrokenLease& broken) {
    const LeaseKey& key = broken.key;
    Oid types[7] = {TEXTOID, TEXTOID, INT8OID, TEXTOID, TEXTOID, TIMESTAMPTZOID, INT4ARRAYOID};
    Datum values[7] = {
        PointerGetDatum(cstring_to_text_with_len(key.bytes, static_cast<int>(key.length))),
        CStringGetTextDatum(broken.holder),
        Int64GetDatum(broken.token),
        CStringGetTextDatum(broken.reason),
        CStringGetTextDatum(GetUserNameFromId(GetUserId(), false)),
        TimestampTzGetDatum(shown_time(broken.expires)),
        array_of_pids(broken.pinners)};
    write_own_table("lease_audit", TRIGGER_TYPE_INSERT,
                    insert_of_line(own_table("lease_audit"),
                                   "key, holder, token, reason, broken_by, would_expire_at, "
                                   "terminated",
                                   7),
                    7, types, values);
}

} // namespace interlock::lease
