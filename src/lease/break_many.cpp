// break_leases: taking many leases from their holders by hand, and the room of a role from it.

#include "lease/argument.h"
#include "lease/audit.h"
#include "lease/lease.h"
#include "lease/ticket.h"

using namespace interlock;

namespace {

// Which leases to break: of this database, of the role (InvalidOid: of any), granted before the
// call.
struct Choice {
    text* pattern;
    Oid role;
    int64 end;
};

// A lease as it was, followed by its key and its holder; or a ticket, by its key.
struct Chosen {
    int64 token; // the number of a ticket
    int64 expires;
    uint16 key_length;
    uint8 holder_length;

    char* key() { return reinterpret_cast<char*>(this + 1); }
    char* holder() { return key() + key_length; }
    size_t size() const { return MAXALIGN(sizeof(Chosen) + key_length + holder_length); }
};

struct Copies {
    char* bytes;
    size_t used;
    size_t room;
};

struct Tally {
    int64 broken;
    int64 pinned;
};

Choice read_choice(const Arguments& arguments);
void drop_tickets(int partition, const Choice& choice, Copies* copies);
void break_in_partition(LeaseDatabase* database, int partition, const Choice& choice,
                        const char* reason, Copies* copies, Tally* tally);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(break_leases);

// break_leases(pattern, reason, role)
Datum break_leases(PG_FUNCTION_ARGS) {
    constexpr size_t kRoom = 8192;
    Arguments arguments(fcinfo);
    Choice choice = read_choice(arguments);
    char* reason = arguments.string(1, "reason");
    if (reason[0] == '\0')
        refuse_empty("reason", "It is stored in interlock.lease_audit.");
    LeaseDatabase* database = lease_database();
    choice.end = read_counter(&database->next_token);
    Copies copies = {static_cast<char*>(palloc(kRoom)), 0, kRoom};
    Tally tally = {};
    for (int i = 0; i < kLeasePartitions; i++) {
        drop_tickets(i, choice, &copies); // before its leases end, which would notify them
        break_in_partition(database, i, choice, reason, &copies, &tally);
    }
    if (tally.broken > 0)
        make_durable(database, 0);
    if (tally.pinned > 0)
        ereport(WARNING,
                (errmsg_plural("%lld lease is pinned by open transactions and was not broken",
                               "%lld leases are pinned by open transactions and were not broken",
                               static_cast<unsigned long>(tally.pinned),
                               static_cast<long long>(tally.pinned)),
                 errhint("They can be broken when these transactions have ended.")));
    PG_RETURN_INT64(tally.broken);
}
}

namespace {

Choice read_choice(const Arguments& arguments) {
    Choice choice = {DatumGetTextPP(arguments.required(0, "pattern")), InvalidOid, 0};
    if (!arguments.is_null(2))
        choice.role = get_role_oid(NameStr(*DatumGetName(arguments.value(2))), false);
    return choice;
}

// --- Leases that match ---------------------------------------------------------------------------

bool is_eligible(const Lease& lease, const Choice& choice, int64 now) {
    return (is_live(lease, now) || lease.pins > 0) && lease.token < choice.end &&
           (!OidIsValid(choice.role) || lease.role == choice.role) &&
           node_at(lease.node)->database == MyDatabaseId;
}

// Null: there is not enough memory for the copy.
Chosen* add_copy(Copies* copies, const LeaseNode& node, Chosen chosen) {
    chosen.key_length = node.length;
    if (copies->room - copies->used < chosen.size())
        return nullptr;
    auto* copy = reinterpret_cast<Chosen*>(copies->bytes + copies->used);
    *copy = chosen;
    node.copy_key(copy->key());
    copies->used += chosen.size();
    return copy;
}

bool copy_lease(Copies* copies, const Lease& lease) {
    Chosen* copy = add_copy(copies, *node_at(lease.node),
                            {lease.token, lease.expires, 0, lease.holder_length});
    if (copy != nullptr)
        lease.copy_holder(copy->holder());
    return copy != nullptr;
}

// Patterns are matched later, as that can raise errors and takes time.
bool copy_eligible(int partition, const Choice& choice, Copies* copies) {
    bool all = true;
    copies->used = 0;
    LWLockAcquire(partition_lock(partition), LW_SHARED);
    int64 now = monotonic_now();
    for (Ref ref = first_lease(partition); ref != 0 && all; ref = next_lease(ref))
        if (is_eligible(*lease_at(ref), choice, now))
            all = copy_lease(copies, *lease_at(ref));
    LWLockRelease(partition_lock(partition));
    return all;
}

void grow(Copies* copies) {
    copies->room *= 2;
    copies->bytes = static_cast<char*>(repalloc_huge(copies->bytes, copies->room));
}

bool matches(const text* key, const Choice& choice) {
    return DatumGetBool(DirectFunctionCall2Coll(textlike, C_COLLATION_OID, PointerGetDatum(key),
                                                PointerGetDatum(choice.pattern)));
}

// --- Tickets -------------------------------------------------------------------------------------

bool copy_tickets(int partition, Oid role, Copies* copies) {
    bool all = true;
    copies->used = 0;
    LWLockAcquire(partition_lock(partition), LW_SHARED);
    for (Ref ref = *first_ticket(partition); ref != 0 && all; ref = ticket_at(ref)->next) {
        const LeaseTicket& ticket = *ticket_at(ref);
        const LeaseNode& node = *node_at(ticket.node);
        if (ticket.role == role && node.database == MyDatabaseId)
            all = add_copy(copies, node, {ticket.number, 0, 0, 0}) != nullptr;
    }
    LWLockRelease(partition_lock(partition));
    return all;
}

// The numbers are in the order of the list.
void drop_numbers(int partition, const int64* numbers, int64 count) {
    int64 at = 0;
    LWLockAcquire(partition_lock(partition), LW_EXCLUSIVE);
    for (Ref* link = first_ticket(partition); *link != 0;) {
        LeaseTicket* ticket = ticket_at(*link);
        while (at < count && numbers[at] < ticket->number) // gone meanwhile
            at++;
        if (at == count)
            break;
        if (numbers[at] == ticket->number)
            drop_ticket(link);
        else
            link = &ticket->next;
    }
    LWLockRelease(partition_lock(partition));
}

// Only of a role that is named: the others' owners are to be notified of the leases that are
// broken.
void drop_tickets(int partition, const Choice& choice, Copies* copies) {
    if (!OidIsValid(choice.role))
        return;
    while (!copy_tickets(partition, choice.role, copies))
        grow(copies);
    if (copies->used == 0)
        return;
    auto* numbers = static_cast<int64*>(MemoryContextAllocHuge(
        CurrentMemoryContext, copies->used / sizeof(Chosen) * sizeof(int64)));
    int64 count = 0;
    for (size_t at = 0; at < copies->used;) {
        CHECK_FOR_INTERRUPTS();
        auto* chosen = reinterpret_cast<Chosen*>(copies->bytes + at);
        text* key = cstring_to_text_with_len(chosen->key(), chosen->key_length);
        if (matches(key, choice))
            numbers[count++] = chosen->token;
        pfree(key);
        at += chosen->size();
    }
    drop_numbers(partition, numbers, count);
    pfree(numbers);
}

// --- Breaking ------------------------------------------------------------------------------------

enum class End { kBroken, kPinned, kGone };

// With `breaks` false: what would happen.
End end_unpinned(LeaseDatabase* database, const LeaseKey& key, int64 token, bool breaks) {
    End end = End::kGone;
    with_lease(key, token, [&](Ref ref) {
        if (ref == 0)
            return;
        if (lease_at(ref)->pins > 0) {
            end = End::kPinned;
        } else if (!lease_at(ref)->ended) {
            end = End::kBroken;
            if (breaks)
                end_lease(database, ref, LeaseEnd::kLost);
        }
    });
    return end;
}

// The audit is in the transaction, the rest is at once.
void break_chosen(LeaseDatabase* database, Chosen* chosen, const Choice& choice, const char* reason,
                  Tally* tally) {
    text* name = cstring_to_text_with_len(chosen->key(), chosen->key_length);
    if (!matches(name, choice))
        return;
    LeaseKey key = lease_key(MyDatabaseId, chosen->key(), chosen->key_length);
    End end = end_unpinned(database, key, chosen->token, false);
    if (end == End::kBroken) {
        BrokenLease broken = {key,
                              chosen->token,
                              chosen->expires,
                              pnstrdup(chosen->holder(), chosen->holder_length),
                              reason,
                              nullptr,
                              0};
        audit_break(broken);
        end = end_unpinned(database, key, chosen->token, true);
        if (end == End::kBroken) {
            log_break(broken);
            count(line_of(key), Counter::kTakeovers);
        }
    }
    tally->broken += end == End::kBroken;
    tally->pinned += end == End::kPinned;
}

void break_in_partition(LeaseDatabase* database, int partition, const Choice& choice,
                        const char* reason, Copies* copies, Tally* tally) {
    while (!copy_eligible(partition, choice, copies))
        grow(copies);
    int64 before = tally->broken;
    MemoryContext memory =
        AllocSetContextCreate(CurrentMemoryContext, "broken leases", ALLOCSET_DEFAULT_SIZES);
    MemoryContext saved = MemoryContextSwitchTo(memory);
    for (size_t at = 0; at < copies->used;) {
        CHECK_FOR_INTERRUPTS();
        auto* chosen = reinterpret_cast<Chosen*>(copies->bytes + at);
        break_chosen(database, chosen, choice, reason, tally);
        at += chosen->size();
        MemoryContextReset(memory);
    }
    MemoryContextSwitchTo(saved);
    MemoryContextDelete(memory);
    if (tally->broken > before)
        clear_records(database, partition);
}

} // namespace
