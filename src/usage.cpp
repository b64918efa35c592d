// The view usage: what of the resources of fixed size in shared memory is in use, in all, by role,
// and by role and database.

#include "key_lock/name.h"
#include "lease/queue.h"
#include "sweeper/state.h"

using namespace interlock;

namespace {

// What a role uses in a database; without a database what it uses in all.
struct Use {
    struct {
        Oid role;
        Oid database;
    } of; // hash key
    int64 lease_units;
    int64 waiters;
    int64 names;
};

constexpr int64 kNotLimited = -1;

struct Output {
    ReturnSetInfo* rows;
    bool sees_all;
};

HTAB* new_uses();
void add_leases(HTAB* uses);
void add_names(HTAB* uses);
void put_totals(const Output& output);
void put_roles(const Output& output, HTAB* uses);
void put_databases(const Output& output, HTAB* uses);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(list_usage);

Datum list_usage(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    Output output = {reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo),
                     has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS)};
    HTAB* uses = new_uses();
    add_leases(uses);
    add_names(uses);
    put_totals(output);
    put_roles(output, uses);
    put_databases(output, uses);
    return 0;
}
}

namespace {

// --- Collecting ----------------------------------------------------------------------------------

HTAB* new_uses() {
    HASHCTL control = {};
    control.keysize = sizeof(Use::of);
    control.entrysize = sizeof(Use);
    control.hcxt = CurrentMemoryContext;
    return hash_create("pg_interlock usage", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

Use* use_of(HTAB* uses, Oid role, Oid database) {
    Use key = {};
    key.of = {role, database};
    bool found;
    auto* use = static_cast<Use*>(hash_search(uses, &key.of, HASH_ENTER, &found));
    if (!found)
        use->lease_units = use->waiters = use->names = 0;
    return use;
}

void add_waiter(HTAB* uses, const LeaseWaiter& waiter) {
    const Lease& lease = *lease_at(waiter.claim.lease);
    Use* use = use_of(uses, lease.role, waiter.claim.database->database);
    use->lease_units += lease.charge.units;
    use->waiters++;
    use_of(uses, lease.role, InvalidOid)->waiters++;
}

// Leases that are over count as long as they have their memory.
void add_leases(HTAB* uses) {
    for (int i = 0; lease_usage() != nullptr && i < kLeasePartitions; i++) {
        CHECK_FOR_INTERRUPTS();
        LWLockAcquire(partition_lock(i), LW_SHARED);
        for_each_lease(i, [uses](Ref ref) {
            const Lease& lease = *lease_at(ref);
            use_of(uses, lease.role, node_at(lease.node)->database)->lease_units +=
                lease.charge.units;
        });
        for_each_waiter(i, [uses](const LeaseWaiter& waiter, int) { add_waiter(uses, waiter); });
        LWLockRelease(partition_lock(i));
    }
}

void add_names(HTAB* uses) {
    for_each_name_use([uses](Oid role, Oid database) { use_of(uses, role, database)->names++; });
}

// --- Showing -------------------------------------------------------------------------------------

int64 leases_of(int64 units) { return (units + kUnitsPerLease - 1) / kUnitsPerLease; }

// Names of databases and roles are no secret; what a role uses is for its members.
bool may_see(const Output& output, Oid role) {
    return output.sees_all || (OidIsValid(role) && has_privs_of_role(GetUserId(), role));
}

// what, database, role, used, of
void put_row(const Output& output, const char* what, const char* database, const char* role,
             int64 used, int64 of) {
    Datum values[5] = {CStringGetTextDatum(what), 0, 0, Int64GetDatum(used), Int64GetDatum(of)};
    bool nulls[5] = {false, database == nullptr, role == nullptr, false, of == kNotLimited};
    if (database != nullptr)
        values[1] = CStringGetTextDatum(database);
    if (role != nullptr)
        values[2] = CStringGetTextDatum(role);
    tuplestore_putvalues(output.rows->setResult, output.rows->setDesc, values, nulls);
}

int64 count_lease_databases() {
    int64 count = 0;
    const LeaseDatabase* database;
    for (int i = 0; (database = lease_database_number(i)) != nullptr; i++)
        count += OidIsValid(database->database);
    return count;
}

int64 sum_of(RoleUsage* usage) {
    int64 sum = 0;
    for (UsageLine line = 0; line < kUsageLines; line++)
        sum += amount_in(read_usage(usage, line));
    return sum;
}

int64 count_waiters() {
    int64 count = 0;
    for (int i = 1; i <= waiter_count(); i++)
        count += waiter_number(i)->queued;
    return count;
}

void put_total(const Output& output, const char* what, int64 used, int64 of) {
    put_row(output, what, nullptr, nullptr, used, of);
}

void put_totals(const Output& output) {
    if (lease_usage() != nullptr) {
        LeaseMemoryUse memory = lease_memory_use();
        put_total(output, "leases", leases_of(sum_of(lease_usage())), max_leases);
        put_total(output, "lease memory", static_cast<int64>(memory.used),
                  static_cast<int64>(memory.most));
        put_total(output, "lease waiters", count_waiters(), waiter_count());
        put_total(output, "lease databases", count_lease_databases(), kMaxLeaseDatabases);
    }
    NamesUse names = names_use();
    if (names.usage != nullptr)
        put_total(output, "key names", names.used, names.most);
    if (sweeper_memory_is_there())
        put_total(output, "sweeper databases", hash_get_num_entries(sweeper_databases()),
                  kMaxDatabases);
}

const char* name_of_role(Oid role) { return OidIsValid(role) ? role_name(role) : "other roles"; }

// The roles' lines; `unit` of what they count is one of what is shown.
void put_lines(const Output& output, const char* what, RoleUsage* usage, int64 unit, int64 share) {
    for (UsageLine line = 0; usage != nullptr && line < kUsageLines; line++) {
        uint64 word = read_usage(usage, line);
        Oid role = role_in(word);
        if (amount_in(word) == 0 || !may_see(output, role))
            continue;
        int64 used = (amount_in(word) + unit - 1) / unit;
        int64 of = OidIsValid(role) && superuser_arg(role) ? kNotLimited : share;
        put_row(output, what, nullptr, name_of_role(role), used, of);
    }
}

template <typename Body>
void for_each_use(HTAB* uses, Body&& body) {
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, uses);
    while (auto* use = static_cast<Use*>(hash_seq_search(&scan)))
        body(*use);
}

void put_roles(const Output& output, HTAB* uses) {
    NamesUse names = names_use();
    put_lines(output, "leases", lease_usage(), kUnitsPerLease, lease_share());
    put_lines(output, "key names", names.usage, 1, names.share);
    for_each_use(uses, [&](const Use& use) {
        if (!OidIsValid(use.of.database) && may_see(output, use.of.role))
            put_row(output, "lease waiters", nullptr, name_of_role(use.of.role), use.waiters,
                    kNotLimited);
    });
}

const char* name_of_database(Oid database) {
    char* name = get_database_name(database);
    return name != nullptr ? name : psprintf("unknown (OID=%u)", database);
}

void put_use(const Output& output, const char* what, const Use& use, int64 used) {
    if (used > 0)
        put_row(output, what, name_of_database(use.of.database), name_of_role(use.of.role), used,
                kNotLimited);
}

void put_databases(const Output& output, HTAB* uses) {
    for_each_use(uses, [&](const Use& use) {
        if (!OidIsValid(use.of.database) || !may_see(output, use.of.role))
            return;
        put_use(output, "leases", use, leases_of(use.lease_units));
        put_use(output, "lease waiters", use, use.waiters);
        put_use(output, "key names", use, use.names);
    });
}

} // namespace
