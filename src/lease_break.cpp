// break_lease: taking a lease from its holder by hand.

#include "lease_argument.h"
#include "own_table.h"

using namespace interlock;

namespace {

struct Broken {
    int64 token; // 0: there is nothing to break
    int64 expires;
    char holder[kMaxHolderBytes + 1];
};

Broken find_live(const LeaseKey& key, int64 end);
void audit_break(const LeaseKey& key, const Broken& broken, const char* reason);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(break_lease);

// break_lease(key, reason)
Datum break_lease(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    LeaseKey key = lease_key_argument(DatumGetTextPP(arguments.required(0, "key")));
    char* reason = arguments.string(1, "reason");
    if (reason[0] == '\0')
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("reason must not be empty"),
                 errhint("It is kept in interlock.lease_audit.")));
    LeaseDatabase* database = lease_database();
    StringInfoData holders;
    initStringInfo(&holders);
    auto end = static_cast<int64>(pg_atomic_read_u64(&database->next_token));
    for (Broken broken; (broken = find_live(key, end)).token != 0;) {
        audit_break(key, broken, reason); // in the transaction, while the rest is at once
        if (!end_lease_of(database, key, broken.token, LeaseEnd::kLost))
            continue;
        ereport(LOG, (errmsg("lease \"%s\" of \"%s\" was broken: %s",
                             pnstrdup(key.bytes, key.length), broken.holder, reason)));
        appendStringInfo(&holders, "%s%s", holders.len > 0 ? ", " : "", broken.holder);
    }
    if (holders.len == 0)
        PG_RETURN_NULL();
    make_durable(database, 0);
    clear_records(database, key.partition);
    PG_RETURN_TEXT_P(cstring_to_text(holders.data));
}
}

namespace {

// The leases at the key one after the other: those that are shared, and permits, can be several.
// Whoever waited for them and is granted one meanwhile has a token from `end` on, and keeps it.
Broken find_live(const LeaseKey& key, int64 end) {
    Broken broken = {};
    LWLockAcquire(partition_lock(key.partition), LW_SHARED);
    int64 now = monotonic_now();
    Ref node = find_node(key);
    Ref ref = node == 0 ? 0 : node_at(node)->leases;
    while (ref != 0 && (lease_at(ref)->token >= end || !is_live(*lease_at(ref), now)))
        ref = lease_at(ref)->next;
    if (ref != 0) {
        const Lease& lease = *lease_at(ref);
        broken.token = lease.token;
        broken.expires = lease.expires;
        memcpy(broken.holder, lease.holder(), lease.holder_length);
    }
    LWLockRelease(partition_lock(key.partition));
    return broken;
}

void audit_break(const LeaseKey& key, const Broken& broken, const char* reason) {
    Oid types[6] = {TEXTOID, TEXTOID, INT8OID, TEXTOID, TEXTOID, TIMESTAMPTZOID};
    Datum values[6] = {
        PointerGetDatum(cstring_to_text_with_len(key.bytes, static_cast<int>(key.length))),
        CStringGetTextDatum(broken.holder),
        Int64GetDatum(broken.token),
        CStringGetTextDatum(reason),
        CStringGetTextDatum(GetUserNameFromId(GetUserId(), false)),
        TimestampTzGetDatum(shown_time(broken.expires))};
    audit("lease_audit",
          "INSERT INTO interlock.lease_audit (key, holder, token, reason, broken_by, "
          "would_expire_at) VALUES ($1, $2, $3, $4, $5, $6)",
          6, types, values);
}

} // namespace
