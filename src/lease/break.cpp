// break_lease: taking a lease from its holder by hand.

#include "lease/argument.h"
#include "lease/audit.h"
#include "lease/lease.h"
#include "lease/pinner.h"
#include "server/client.h"

using namespace interlock;

namespace {

struct Found {
    int64 token; // 0: there is nothing to break
    int64 expires;
    char holder[kMaxHolderBytes + 1];
};

// The most processes that are named at once.
struct Pinners {
    int32 pids[64];
    int count;
};

Found find_breakable(const LeaseKey& key, int64 end, Pinners* pinners);
[[noreturn]] void raise_pinned(const LeaseKey& key, const int32* pids, int count);
[[noreturn]] void raise_pinned_here(const LeaseKey& key);
void check_pinners(const LeaseKey& key, int64 end, bool terminates);
void terminate(const LeaseKey& key, int64 token, const Pinners& pinners);
bool end_found(LeaseDatabase* database, const LeaseKey& key, int64 token, bool also_pinned);
void terminate_all(const LeaseKey& key, int64 token);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(break_lease);

// break_lease(key, reason, terminate)
Datum break_lease(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    LeaseKey key = lease_key_argument(DatumGetTextPP(arguments.required(0, "key")));
    char* reason = arguments.string(1, "reason");
    bool terminates = arguments.boolean(2, "terminate");
    if (reason[0] == '\0')
        refuse_empty("reason", "It is stored in interlock.lease_audit.");
    LeaseDatabase* database = lease_database();
    StringInfoData holders;
    initStringInfo(&holders);
    auto end = static_cast<int64>(pg_atomic_read_u64(&database->next_token));
    check_pinners(key, end, terminates);
    Pinners pinners;
    for (Found found; (found = find_breakable(key, end, &pinners)).token != 0;) {
        if (pinners.count > 0 && !terminates)
            raise_pinned(key, pinners.pids, pinners.count);
        if (has_pinned_token(found.token))
            raise_pinned_here(key);
        BrokenLease broken = {key,    found.token,  found.expires, found.holder,
                              reason, pinners.pids, pinners.count};
        audit_break(broken); // in the transaction, while the rest is at once
        terminate(key, found.token, pinners);
        bool ends = end_found(database, key, found.token, terminates);
        if (!ends && pinners.count == 0)
            continue;
        log_break(broken);
        count(line_of(key), Counter::kTakeovers);
        if (terminates)
            terminate_all(key, found.token);
        appendStringInfo(&holders, "%s%s", holders.len > 0 ? ", " : "", found.holder);
    }
    if (holders.len == 0)
        PG_RETURN_NULL();
    make_durable(database, 0);
    clear_records(database, key.partition);
    PG_RETURN_TEXT_P(cstring_to_text(holders.data));
}
}

namespace {

void find_pinners(const Lease& lease, Pinners* pinners) {
    for_each_pinner(lease, [pinners](Pinner pinner) {
        if (pinners->count < static_cast<int>(lengthof(pinners->pids)))
            pinners->pids[pinners->count++] = pinner.pid;
    });
}

// An ended lease stays as long as it is pinned. A waiter that is granted a lease meanwhile has a
// token from `end` on, and keeps it.
bool is_breakable(const Lease& lease, int64 end, int64 now) {
    return lease.token < end && (is_live(lease, now) || lease.pins > 0);
}

// The leases at the key one after the other: those that are shared, and permits, can be several.
Found find_breakable(const LeaseKey& key, int64 end, Pinners* pinners) {
    Found found = {};
    pinners->count = 0;
    LWLockAcquire(partition_lock(key.partition), LW_SHARED);
    int64 now = monotonic_now();
    Ref node = find_node(key);
    Ref ref = node == 0 ? 0 : node_at(node)->leases;
    while (ref != 0 && !is_breakable(*lease_at(ref), end, now))
        ref = lease_at(ref)->next;
    if (ref != 0) {
        const Lease& lease = *lease_at(ref);
        found.token = lease.token;
        found.expires = lease.expires;
        lease.copy_holder(found.holder);
        find_pinners(lease, pinners);
    }
    LWLockRelease(partition_lock(key.partition));
    return found;
}

const char* list_of(const int32* pids, int count) {
    StringInfoData list;
    initStringInfo(&list);
    for (int i = 0; i < count; i++)
        appendStringInfo(&list, "%s%d", i > 0 ? ", " : "", pids[i]);
    return list.data;
}

void raise_pinned(const LeaseKey& key, const int32* pids, int count) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE),
                    errmsg("lease \"%s\" is pinned by open transactions that have asserted it",
                           pnstrdup(key.bytes, key.length)),
                    errdetail("Processes: %s.", list_of(pids, count)),
                    errhint("Wait until they have ended, or give terminate => true to end their "
                            "sessions.")));
}

void raise_pinned_here(const LeaseKey& key) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE),
                    errmsg("lease \"%s\" is pinned by the current transaction",
                           pnstrdup(key.bytes, key.length)),
                    errhint("End the transaction first.")));
}

// --- Sessions that pin it ------------------------------------------------------------------------

Pinners pinners_of(const LeaseKey& key, int64 token) {
    Pinners pinners = {};
    LWLockAcquire(partition_lock(key.partition), LW_SHARED);
    Ref ref = find_lease(find_node(key), token);
    if (ref != 0)
        find_pinners(*lease_at(ref), &pinners);
    LWLockRelease(partition_lock(key.partition));
    return pinners;
}

// Those of all leases at the key, as many as there is room for. How many there are.
int copy_pinners(const LeaseKey& key, int64 end, int32* pids, int room) {
    int count = 0;
    LWLockAcquire(partition_lock(key.partition), LW_SHARED);
    int64 now = monotonic_now();
    Ref node = find_node(key);
    for (Ref ref = node == 0 ? 0 : node_at(node)->leases; ref != 0; ref = lease_at(ref)->next)
        if (is_breakable(*lease_at(ref), end, now))
            for_each_pinner(*lease_at(ref), [&](Pinner pinner) {
                if (count < room)
                    pids[count] = pinner.pid;
                count++;
            });
    LWLockRelease(partition_lock(key.partition));
    return count;
}

// As pg_terminate_backend: superusers end any session, others none of a superuser.
bool may_terminate(int32 pid) {
    PGPROC* process = BackendPidGetProc(pid);
    if (process == nullptr || superuser())
        return true;
    Oid role = process->roleId;
    if (!OidIsValid(role) || superuser_arg(role))
        return false;
    return has_privs_of_role(GetUserId(), role) ||
           has_privs_of_role(GetUserId(), ROLE_PG_SIGNAL_BACKEND);
}

[[noreturn]] void raise_may_not_terminate(const LeaseKey& key, int32 pid) {
    ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                    errmsg("permission denied to end a session that pins lease \"%s\"",
                           pnstrdup(key.bytes, key.length)),
                    errdetail("Process: %d.", pid),
                    errhint("Roles with the privileges of its role or of pg_signal_backend can end "
                            "it; only superusers can end a session of a superuser.")));
}

void check_may_call_terminate() {
    if (check_function_privilege(F_PG_TERMINATE_BACKEND, GetUserId()) != ACLCHECK_OK)
        aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, "pg_terminate_backend");
}

// Before the first of several leases is broken. A lease that is pinned later is found when its turn
// comes.
void check_pinners(const LeaseKey& key, int64 end, bool terminates) {
    int room = 0;
    int32* pids = nullptr;
    int count;
    while ((count = copy_pinners(key, end, pids, room)) > room) {
        room = count;
        pids = static_cast<int32*>(palloc(sizeof(int32) * room));
    }
    if (count == 0)
        return;
    if (!terminates)
        raise_pinned(key, pids, count);
    check_may_call_terminate();
    for (int i = 0; i < count; i++) {
        if (pids[i] == MyProcPid)
            raise_pinned_here(key);
        if (!may_terminate(pids[i]))
            raise_may_not_terminate(key, pids[i]);
    }
}

bool pins(const LeaseKey& key, int64 token, int32 pid) {
    Pinners pinners = pinners_of(key, token);
    for (int i = 0; i < pinners.count; i++)
        if (pinners.pids[i] == pid)
            return true;
    return false;
}

// Raises 42501 where the caller may not: the server's function checks that for each process. A
// process whose transaction has ended meanwhile is skipped. As with any use of that function, one
// that ends it between the check and the signal is not.
void terminate(const LeaseKey& key, int64 token, const Pinners& pinners) {
    if (pinners.count > 0)
        check_may_call_terminate();
    for (int i = 0; i < pinners.count; i++)
        if (pins(key, token, pinners.pids[i]))
            (void)DirectFunctionCall2(pg_terminate_backend, Int32GetDatum(pinners.pids[i]),
                                      Int64GetDatum(0));
}

// Returns when nothing pins the lease, which has ended and so is not pinned anew.
void terminate_all(const LeaseKey& key, int64 token) {
    constexpr long kPause = 10;
    for (Pinners pinners; (pinners = pinners_of(key, token)).count > 0;) {
        terminate(key, token, pinners);
        wait_for_latch(kPause, PG_WAIT_EXTENSION);
    }
}

// False: there is nothing left to break, or it was pinned meanwhile and must not be broken.
bool end_found(LeaseDatabase* database, const LeaseKey& key, int64 token, bool also_pinned) {
    bool ends = false;
    with_lease(key, token, [&](Ref ref) {
        ends = ref != 0 && (also_pinned || lease_at(ref)->pins == 0);
        if (ends && !lease_at(ref)->ended)
            end_lease(database, ref, LeaseEnd::kLost);
    });
    return ends;
}

} // namespace
