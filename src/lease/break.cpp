// break_lease and break_leases: taking leases from their holders.

#include "lease/argument.h"
#include "lease/audit.h"
#include "lease/lease.h"
#include "lease/pinner.h"
#include "lease/ticket.h"
#include "server/client.h"

namespace interlock::lease {

namespace {

// Which leases break_leases breaks: of this database, of the role (InvalidOid: of any), granted
// before the call.
struct Choice {
    const text* pattern;
    Oid role;
    int64 end;
};

enum class End { kBroken, kPinned, kGone };

} // namespace

static const char* reason_argument(const Arguments& arguments);
static List* breakable_at(const LeaseKey& key, int64 end, const char* reason);
static List* breakable_in(int partition, const Choice& choice, const char* reason);
static void check_pinners(const List* leases, bool terminates);
[[noreturn]] static void raise_pinned(const LeaseKey& key, const List* pids);
static bool matches(const char* key, size_t length, const Choice& choice);
static void drop_tickets(int partition, const Choice& choice);
static End break_one(LeaseDatabase* database, const BrokenLease& lease, bool terminates);
static List* pinners_of(const BrokenLease& lease);

extern "C" {
PG_FUNCTION_INFO_V1(break_lease);
PG_FUNCTION_INFO_V1(break_leases);

// break_lease(key, reason, terminate)
Datum break_lease(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    LeaseKey key = lease_key_argument(DatumGetTextPP(arguments.required(0, "key")));
    const char* reason = reason_argument(arguments);
    bool terminates = arguments.boolean(2, "terminate");
    LeaseDatabase* database = lease_database();
    List* leases = breakable_at(key, read_counter(&database->next_token), reason);
    check_pinners(leases, terminates);
    StringInfoData holders;
    initStringInfo(&holders);
    ListCell* cell;
    foreach (cell, leases) {
        const auto& lease = *static_cast<const BrokenLease*>(lfirst(cell));
        End end = break_one(database, lease, terminates);
        if (end == End::kPinned)
            raise_pinned(key, pinners_of(lease));
        if (end == End::kBroken)
            appendStringInfo(&holders, "%s%s", holders.len > 0 ? ", " : "", lease.holder);
    }
    if (holders.len == 0)
        PG_RETURN_NULL();
    make_durable(database, 0);
    clear_records(database, key.partition);
    PG_RETURN_TEXT_P(cstring_to_text(holders.data));
}

// break_leases(pattern, reason, role)
Datum break_leases(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Choice choice = {DatumGetTextPP(arguments.required(0, "pattern")), InvalidOid, 0};
    if (!arguments.is_null(2))
        choice.role = get_role_oid(NameStr(*DatumGetName(arguments.value(2))), false);
    const char* reason = reason_argument(arguments);
    LeaseDatabase* database = lease_database();
    choice.end = read_counter(&database->next_token);
    int64 broken = 0;
    int64 pinned = 0;
    MemoryContext memory =
        AllocSetContextCreate(CurrentMemoryContext, "broken leases", ALLOCSET_DEFAULT_SIZES);
    MemoryContext saved = MemoryContextSwitchTo(memory);
    for (int i = 0; i < kLeasePartitions; i++) {
        drop_tickets(i, choice); // before its leases end, which would notify them
        int64 before = broken;
        ListCell* cell;
        foreach (cell, breakable_in(i, choice, reason)) {
            CHECK_FOR_INTERRUPTS();
            const auto& lease = *static_cast<const BrokenLease*>(lfirst(cell));
            if (!matches(lease.key.bytes, lease.key.length, choice))
                continue;
            End end = break_one(database, lease, false);
            broken += end == End::kBroken;
            pinned += end == End::kPinned;
        }
        if (broken > before)
            clear_records(database, i);
        MemoryContextReset(memory);
    }
    MemoryContextSwitchTo(saved);
    MemoryContextDelete(memory);
    if (broken > 0)
        make_durable(database, 0);
    if (pinned > 0)
        ereport(WARNING,
                (errmsg_plural("%lld lease is pinned by open transactions and was not broken",
                               "%lld leases are pinned by open transactions and were not broken",
                               static_cast<unsigned long>(pinned), static_cast<long long>(pinned)),
                 errhint("They can be broken when these transactions have ended.")));
    PG_RETURN_INT64(broken);
}
}

static const char* reason_argument(const Arguments& arguments) {
    const char* reason = arguments.string(1, "reason");
    if (reason[0] == '\0')
        refuse_empty("reason", "It is stored in interlock.lease_audit.");
    return reason;
}

// --- What can be broken --------------------------------------------------------------------------

// An ended lease stays as long as it is pinned. A waiter that is granted a lease meanwhile has a
// token from `end` on, and keeps it.
static bool is_breakable(const Lease& lease, int64 end, int64 now) {
    return lease.token < end && (is_live(lease, now) || lease.pins > 0);
}

// A copy, for when the partition's lock is released.
static BrokenLease* copy_lease(const Lease& lease, const char* reason) {
    const LeaseNode& node = *node_at(lease.node);
    auto* copy = static_cast<BrokenLease*>(palloc(sizeof(BrokenLease)));
    *copy = {lease_key(node.database, copy_of_key(node), node.length),
             lease.token,
             lease.expires,
             copy_of_holder(lease),
             reason,
             list_pinners(lease)};
    return copy;
}

// Those that are shared, and permits, can be several.
static List* breakable_at(const LeaseKey& key, int64 end, const char* reason) {
    List* leases = NIL;
    LWLockAcquire(partition_lock(key.partition), LW_SHARED);
    int64 now = monotonic_now();
    Ref node = find_node(key);
    for (Ref ref = node == 0 ? 0 : node_at(node)->leases; ref != 0; ref = lease_at(ref)->next)
        if (is_breakable(*lease_at(ref), end, now))
            leases = lappend(leases, copy_lease(*lease_at(ref), reason));
    LWLockRelease(partition_lock(key.partition));
    return leases;
}

static bool is_of(Oid role, Ref node, const Choice& choice) {
    return (!OidIsValid(choice.role) || role == choice.role) &&
           node_at(node)->database == MyDatabaseId;
}

static List* breakable_in(int partition, const Choice& choice, const char* reason) {
    List* leases = NIL;
    LWLockAcquire(partition_lock(partition), LW_SHARED);
    int64 now = monotonic_now();
    for_each_lease(partition, [&](Ref ref) {
        const Lease& lease = *lease_at(ref);
        if (is_breakable(lease, choice.end, now) && is_of(lease.role, lease.node, choice))
            leases = lappend(leases, copy_lease(lease, reason));
    });
    LWLockRelease(partition_lock(partition));
    return leases;
}

static bool matches(const char* key, size_t length, const Choice& choice) {
    alignas(int32) char name[VARHDRSZ + kMaxLeaseKeyBytes];
    SET_VARSIZE(name, VARHDRSZ + length);
    memcpy(name + VARHDRSZ, key, length);
    return DatumGetBool(DirectFunctionCall2Coll(textlike, C_COLLATION_OID, PointerGetDatum(name),
                                                PointerGetDatum(choice.pattern)));
}

// Only of a role that is named: the others' owners are to be notified of the leases that are
// broken.
static void drop_tickets(int partition, const Choice& choice) {
    if (!OidIsValid(choice.role))
        return;
    LWLockAcquire(partition_lock(partition), LW_EXCLUSIVE);
    drop_tickets_if(partition, [&choice](const LeaseTicket& ticket) {
        KeyRoom room;
        const LeaseNode& node = *node_at(ticket.node);
        return is_of(ticket.role, ticket.node, choice) &&
               matches(key_bytes(node, room), node.length, choice);
    });
    LWLockRelease(partition_lock(partition));
}

// --- Sessions that pin a lease -------------------------------------------------------------------

static void raise_pinned(const LeaseKey& key, const List* pids) {
    StringInfoData list;
    initStringInfo(&list);
    ListCell* cell;
    foreach (cell, pids)
        appendStringInfo(&list, "%s%d", list.len > 0 ? ", " : "", lfirst_int(cell));
    ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE),
                    errmsg("lease \"%s\" is pinned by open transactions that have asserted it",
                           pnstrdup(key.bytes, key.length)),
                    errdetail("Processes: %s.", list.data),
                    errhint("Wait until they have ended, or give terminate => true to end their "
                            "sessions.")));
}

[[noreturn]] static void raise_pinned_here(const LeaseKey& key) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE),
                    errmsg("lease \"%s\" is pinned by the current transaction",
                           pnstrdup(key.bytes, key.length)),
                    errhint("End the transaction first.")));
}

// As pg_terminate_backend: superusers end any session, others none of a superuser.
static bool may_terminate(int32 pid) {
    PGPROC* process = BackendPidGetProc(pid);
    if (process == nullptr || superuser())
        return true;
    Oid role = process->roleId;
    if (!OidIsValid(role) || superuser_arg(role))
        return false;
    return has_privs_of_role(GetUserId(), role) ||
           has_privs_of_role(GetUserId(), ROLE_PG_SIGNAL_BACKEND);
}

[[noreturn]] static void raise_may_not_terminate(const LeaseKey& key, int32 pid) {
    ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                    errmsg("permission denied to end a session that pins lease \"%s\"",
                           pnstrdup(key.bytes, key.length)),
                    errdetail("Process: %d.", pid),
                    errhint("Roles with the privileges of its role or of pg_signal_backend can end "
                            "it; only superusers can end a session of a superuser.")));
}

static void check_may_call_terminate() {
    if (check_function_privilege(F_PG_TERMINATE_BACKEND, GetUserId()) != ACLCHECK_OK)
        aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, "pg_terminate_backend");
}

// Before the first of the leases of a key is broken.
static void check_pinners(const List* leases, bool terminates) {
    List* pids = NIL;
    ListCell* cell;
    foreach (cell, leases)
        pids = list_concat(pids, static_cast<const BrokenLease*>(lfirst(cell))->pinners);
    if (pids == NIL)
        return;
    const LeaseKey& key = static_cast<const BrokenLease*>(linitial(leases))->key;
    if (!terminates)
        raise_pinned(key, pids);
    check_may_call_terminate();
    foreach (cell, pids) {
        if (lfirst_int(cell) == MyProcPid)
            raise_pinned_here(key);
        if (!may_terminate(lfirst_int(cell)))
            raise_may_not_terminate(key, lfirst_int(cell));
    }
}

static List* pinners_of(const BrokenLease& lease) {
    List* pids = NIL;
    LWLockAcquire(partition_lock(lease.key.partition), LW_SHARED);
    Ref ref = find_lease(find_node(lease.key), lease.token);
    if (ref != 0)
        pids = list_pinners(*lease_at(ref));
    LWLockRelease(partition_lock(lease.key.partition));
    return pids;
}

// Those that pin it now. Raises 42501 where the caller may not: the server's function checks that
// for each process. As with any use of that function, a process whose transaction ends between the
// look and the signal is not skipped. Whether there were any.
static bool terminate(const BrokenLease& lease) {
    List* pids = pinners_of(lease);
    if (pids == NIL)
        return false;
    check_may_call_terminate();
    ListCell* cell;
    foreach (cell, pids)
        (void)DirectFunctionCall2(pg_terminate_backend, Int32GetDatum(lfirst_int(cell)),
                                  Int64GetDatum(0));
    list_free(pids);
    return true;
}

// --- Breaking ------------------------------------------------------------------------------------

// With `breaks` false: what would happen.
static End end_one(LeaseDatabase* database, const BrokenLease& lease, bool also_pinned,
                   bool breaks) {
    End end = End::kGone;
    with_lease(lease.key, lease.token, [&](Ref ref) {
        if (ref == 0)
            return;
        bool is_pinned = lease_at(ref)->pins > 0;
        if (is_pinned && !also_pinned)
            end = End::kPinned;
        else if (is_pinned || !lease_at(ref)->ended)
            end = End::kBroken;
        if (breaks && end == End::kBroken && !lease_at(ref)->ended)
            end_lease(database, ref, LeaseEnd::kLost);
    });
    return end;
}

static void log_break(const BrokenLease& broken) {
    ereport(LOG,
            (errmsg("lease \"%s\" of \"%s\" was broken: %s",
                    pnstrdup(broken.key.bytes, broken.key.length), broken.holder, broken.reason)));
}

// The audit is in the transaction, the rest is at once. A lease that has ended is not pinned again.
static End break_one(LeaseDatabase* database, const BrokenLease& lease, bool terminates) {
    constexpr long kPause = 10;
    End end = end_one(database, lease, terminates, false);
    if (end != End::kBroken)
        return end;
    if (has_pinned_token(lease.token))
        raise_pinned_here(lease.key);
    BrokenLease audited = lease;
    audited.pinners = terminates ? pinners_of(lease) : NIL; // now, not when it was copied
    audit_break(audited);
    bool has_terminated = terminates && terminate(lease);
    end = end_one(database, lease, terminates, true);
    if (end == End::kPinned || (end == End::kGone && !has_terminated))
        return end;
    log_break(lease);
    count(line_of(lease.key), Counter::kTakeovers);
    while (terminates && terminate(lease))
        wait_for_latch(kPause, PG_WAIT_EXTENSION);
    return End::kBroken;
}

} // namespace interlock::lease
