#include "lease/database.h"

#include "lease/ticket.h"

namespace interlock::lease {

extern "C" {
PG_FUNCTION_INFO_V1(note_lease_store);
}

int max_lease_ttl = 86400;
int lease_durable_after = 60;

constexpr int64 kTokenBlock = kTokenStep << 20;

namespace {

enum Recovery { kSafe, kImmediate };

} // namespace

static int lease_recovery = kSafe;
const config_enum_entry kRecoveries[] = {
    {"safe", kSafe, false}, {"immediate", kImmediate, false}, {nullptr, 0, false}};

namespace {

struct LeaseService {
    slock_t lock; // of the list of databases
    int64 began;  // 0: not yet, as on a standby
    int count;
    LeaseDatabase databases[kMaxLeaseDatabases]; // touched as they come
};

} // namespace

static LeaseService* service = nullptr;

// How much further than needed the horizon is moved.
static int64 reserve() { return longest_short_lease() / 4; }

// The horizon that a lease of `ttl` from now on needs; the records of long ones are their own.
static int64 wanted_horizon(int64 ttl) {
    return ttl > 0 && ttl <= longest_short_lease() ? monotonic_now() + ttl + reserve() : 0;
}

static void raise(pg_atomic_uint64* value, int64 to) {
    uint64 now = pg_atomic_read_u64(value);
    while (static_cast<int64>(now) < to &&
           !pg_atomic_compare_exchange_u64(value, &now, static_cast<uint64>(to)))
        ;
}

// Whether what is in memory is in the store as it is now.
static bool is_store_known(LeaseDatabase* database) {
    return read_counter(&database->store_known) == read_counter(&database->store_changes);
}

// A store that is new has no records: the horizon stands for those of long leases.
static int64 last_expiry(const LeaseDatabase& database) {
    int64 last = 0;
    for_each_lease_of(database.database, [&last](const Lease& lease) {
        if (lease.expires != kNeverExpires)
            last = Max(last, lease.expires);
    });
    return last;
}

// Tokens are used up after 2^45 leases.
static int64 end_of_reserve(int64 begin) {
    if (begin > PG_INT64_MAX - kTokenBlock)
        ereport(ERROR, (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
                        errmsg("tokens of leases are used up"),
                        errhint("Drop and create the extension pg_interlock.")));
    return begin + kTokenBlock;
}

// The counter of the role's wrong tokens; roles without a place share the last one.
static WrongTokens* wrong_tokens_of(LeaseDatabase* database, Oid role) {
    for (uint32 i = 0; i < kMaxGuessers; i++) {
        WrongTokens* wrong = &database->wrong[(role + i) % kMaxGuessers];
        if (wrong->role == role || !OidIsValid(wrong->role))
            return wrong;
    }
    return &database->wrong[kMaxGuessers];
}

// The same after every start, as floors are durable.
static uint64 durable_hash(const LeaseKey& key) {
    return hash_bytes_extended(reinterpret_cast<const unsigned char*>(key.bytes),
                               static_cast<int>(key.length), key.database);
}

namespace {

// A token is lost when it is not above either of its floors. The floor of the key separates keys;
// the floor of the role prevents that losses of one role affect others.
struct TokenFloors {
    int64* of_key;
    int64* of_role;
};

} // namespace

static TokenFloors floors_of(LeaseDatabase* database, const LeaseKey& key, Oid role) {
    constexpr uint32 kFloorsPerRole = 4;
    uint64 hash = durable_hash(key);
    uint32 set = murmurhash32(role) % (kRoleFloors / kFloorsPerRole);
    uint64 of_role = kKeyFloors + set * kFloorsPerRole + (hash >> 48) % kFloorsPerRole;
    return {&database->floors[(hash >> 16) % kKeyFloors], &database->floors[of_role]};
}

static void initialize_database(LeaseDatabase* database, Oid oid) {
    memset(database, 0, sizeof(LeaseDatabase));
    SpinLockInit(&database->lock);
    pg_atomic_init_u32(&database->serves, 0);
    pg_atomic_init_u32(&database->free_block, 1);
    for (pg_atomic_uint64* counter :
         {&database->serves_from, &database->next_token, &database->token_end, &database->horizon,
          &database->lost_durable, &database->store_changes, &database->store_known})
        pg_atomic_init_u64(counter, 0);
    database->database = oid;
}

// The store may be another one from now on: that of a new extension, or, when its creation is
// rolled back, the previous one.
static void note_store_change() {
    LeaseDatabase* database = find_or_make_database(MyDatabaseId);
    if (database != nullptr)
        pg_atomic_fetch_add_u64(&database->store_changes, 1);
}

static bool created_store = false; // in this transaction

static void note_end_of_creation(XactEvent event, void*) {
    if (!created_store || (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT))
        return;
    created_store = false;
    note_store_change();
}

int64 longest_span() { return longest_short_lease() + reserve(); }

bool has_grace() { return lease_recovery == kSafe; }

int64 service_began() { return service->began != 0 ? service->began : monotonic_now(); }

void drop_leases_of(Oid database) {
    for (int i = 0; i < kLeasePartitions; i++) {
        LWLockAcquire(partition_lock(i), LW_EXCLUSIVE);
        drop_tickets_if(i, [database](const LeaseTicket& ticket) {
            return node_at(ticket.node)->database == database;
        });
        for_each_lease(i, [database](Ref lease) {
            if (node_at(lease_at(lease)->node)->database == database)
                drop_lease(lease);
        });
        LWLockRelease(partition_lock(i));
    }
}

void require_lease_service() {
    if (service == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("leases are not available: pg_interlock is not preloaded"),
                        errhint("Set shared_preload_libraries = 'pg_interlock' and restart the "
                                "server.")));
}

LeaseDatabase* own_database() {
    static LeaseDatabase* mine = nullptr;
    if (created_store) // its rollback would undo what other sessions rely on
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("leases cannot be used in the transaction that creates their "
                               "extension")));
    if (mine != nullptr && mine->loaded)
        return mine;
    require_lease_service();
    if (RecoveryInProgress())
        ereport(ERROR, (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
                        errmsg("leases cannot be used during recovery"),
                        errhint("Use the primary server.")));
    mine = find_or_make_database(MyDatabaseId);
    if (mine == nullptr) {
        forget_dropped_databases();
        mine = find_or_make_database(MyDatabaseId);
    }
    if (mine == nullptr)
        ereport(ERROR,
                (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                 errmsg("leases are used in too many databases"),
                 errhint("At most %d databases of a server can use leases.", kMaxLeaseDatabases)));
    return mine;
}

bool covers(LeaseDatabase* database, int64 expires) {
    return is_store_known(database) && expires <= read_counter(&database->horizon);
}

bool knows_losses(LeaseDatabase* database, uint64 lost) {
    return is_store_known(database) && lost <= pg_atomic_read_u64(&database->lost_durable);
}

int64 next_token(LeaseDatabase* database, const LeaseNode& node, Oid role, LeaseMode mode) {
    uint64 first = pg_atomic_read_u64(&database->next_token);
    while (first < pg_atomic_read_u64(&database->token_end))
        if (pg_atomic_compare_exchange_u64(&database->next_token, &first, first + kTokenStep)) {
            KeyRoom room;
            TokenScope scope = {node.database, role, key_bytes(node, room), node.length};
            return make_token(database->secret, scope, static_cast<int64>(first), mode);
        }
    return 0;
}

void make_durable(LeaseDatabase* database, int64 ttl) {
    Relation store = open_store();
    Boot boot = this_boot();
    uint64 lost;
    LeaseState written;
    SipKey secret = is_set(database->secret) ? database->secret : new_secret();
    int64 store_changes = read_counter(&database->store_changes);
    int64 longest = is_store_known(database) ? 0 : last_expiry(*database);
    bool begins = pg_atomic_read_u32(&database->serves) == 0 &&
                  monotonic_now() >= read_counter(&database->serves_from);
    XLogRecPtr record = change_state(store, [&](LeaseState* state) {
        int64 next = read_counter(&database->next_token);
        state->database = database->database;
        bool begins_anew = state->token_high == 0 && database->loaded;
        state->token_high = Max(state->token_high, read_counter(&database->token_end));
        if (state->token_high - next < kTokenBlock / 2)
            state->token_high = end_of_reserve(Max(state->token_high, next));
        if (!is_set(state->secret))
            state->secret = secret;
        int64 horizon = state->run == database->run ? state->horizon : 0;
        horizon = Max(Max(horizon, read_counter(&database->horizon)), longest);
        state->horizon = Max(horizon, wanted_horizon(ttl));
        state->span = Max(state->horizon - monotonic_now(), longest_span());
        if (begins_anew || (begins && state->epoch_run != database->run)) { // R6
            state->epoch = next;
            state->epoch_run = database->run;
        }
        state->run = database->run;
        state->timeline = GetWALInsertionTimeLine();
        state->boot = boot;
        SpinLockAcquire(&database->lock);
        memcpy(state->floors, database->floors, sizeof(state->floors));
        lost = database->lost;
        SpinLockRelease(&database->lock);
        written = *state;
    });
    flush_store(record);
    close_store(store);
    if (created_store) // it is not used before it is committed
        return;
    if (!is_set(database->secret)) // set by the first session that loads, before others use it
        database->secret = written.secret;
    raise(&database->token_end, written.token_high);
    raise(&database->horizon, written.horizon);
    raise(&database->lost_durable, static_cast<int64>(lost));
    raise(&database->store_known, store_changes);
    if (begins)
        pg_atomic_write_u32(&database->serves, 1);
}

bool accept_former_token(LeaseDatabase* database, Oid role, bool genuine) {
    constexpr uint32 kMaxWrongTokens = 16;
    SpinLockAcquire(&database->lock);
    WrongTokens* wrong = wrong_tokens_of(database, role);
    bool is_refused = wrong->count >= kMaxWrongTokens;
    if (!genuine && !is_refused) {
        wrong->role = role;
        wrong->count++;
    }
    bool is_last = !is_refused && wrong->count == kMaxWrongTokens;
    SpinLockRelease(&database->lock);
    if (is_last)
        ereport(LOG_SERVER_ONLY,
                (errmsg("role \"%s\" has given %u wrong tokens and cannot reclaim leases from "
                        "before the crash",
                        role_name(role), kMaxWrongTokens)));
    return genuine && !is_refused;
}

void lose_token(LeaseDatabase* database, const LeaseKey& key, Oid role, int64 token) {
    TokenFloors floors = floors_of(database, key, role);
    SpinLockAcquire(&database->lock);
    if (Min(*floors.of_key, *floors.of_role) < token) {
        *floors.of_key = Max(*floors.of_key, token);
        *floors.of_role = Max(*floors.of_role, token);
        database->lost++;
    }
    database->lost_in[key.partition] = database->lost;
    SpinLockRelease(&database->lock);
}

void lose_lease(LeaseDatabase* database, const Lease& lease) {
    KeyRoom room;
    lose_token(database, key_of(*node_at(lease.node), room), lease.role, lease.token);
}

bool is_former_token(LeaseDatabase* database, int64 token) {
    return is_in_grace(database, monotonic_now()) && token >= database->reclaim_from &&
           token < database->reclaim_to;
}

bool is_lost_token(LeaseDatabase* database, const LeaseKey& key, Oid role, int64 token) {
    TokenFloors floors = floors_of(database, key, role);
    SpinLockAcquire(&database->lock);
    bool is_lost = token <= Min(*floors.of_key, *floors.of_role);
    SpinLockRelease(&database->lock);
    return is_lost;
}

void forget_long_leases(LeaseDatabase* database, const RecordOf* records, int count) {
    XLogRecPtr last = InvalidXLogRecPtr;
    Relation store = open_store();
    for (int i = 0; i < count; i++)
        last = Max(last, clear_long_lease(store, records[i].place, records[i].token));
    flush_store(last);
    close_store(store);
    pg_atomic_write_u32(&database->free_block, records[0].place.block);
}

LeaseDatabase* find_or_make_database(Oid oid) {
    LeaseDatabase* found = nullptr;
    LeaseDatabase* free = nullptr;
    SpinLockAcquire(&service->lock);
    for (int i = 0; i < service->count && found == nullptr; i++) {
        LeaseDatabase* entry = &service->databases[i];
        if (entry->database == oid)
            found = entry;
        else if (!OidIsValid(entry->database))
            free = entry;
    }
    if (found == nullptr && free == nullptr && service->count < kMaxLeaseDatabases)
        free = &service->databases[service->count++];
    if (found == nullptr && free != nullptr) {
        found = free;
        initialize_database(found, oid);
    }
    SpinLockRelease(&service->lock);
    return found;
}

void forget_dropped_databases() {
    LeaseDatabase* database;
    for (int i = 0; (database = lease_database_number(i)) != nullptr; i++) {
        Oid oid = database->database;
        if (!OidIsValid(oid) || SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(oid)))
            continue;
        drop_leases_of(oid);
        SpinLockAcquire(&service->lock);
        if (database->database == oid)
            database->database = InvalidOid;
        SpinLockRelease(&service->lock);
    }
}

LeaseDatabase* lease_database_number(int i) {
    return i < service->count ? &service->databases[i] : nullptr;
}

void begin_lease_service() {
    if (service != nullptr && service->began == 0)
        service->began = monotonic_now();
}

size_t lease_service_size() { return sizeof(LeaseService); }

void attach_lease_service(void* memory, bool found) {
    service = static_cast<LeaseService*>(memory);
    if (!found) {
        SpinLockInit(&service->lock);
        service->began = 0;
        service->count = 0;
    }
}

void define_lease_settings() {
    DefineCustomIntVariable("interlock.max_lease_ttl", "The longest time to live of a lease.",
                            nullptr, &max_lease_ttl, 86400, 1, 366 * 86400, PGC_SUSET, GUC_UNIT_S,
                            nullptr, nullptr, nullptr);
    DefineCustomIntVariable("interlock.lease_durable_after",
                            "Leases with a longer time to live are recorded durably.",
                            "It also bounds the grace after a crash.", &lease_durable_after, 60, 1,
                            3600, PGC_SIGHUP, GUC_UNIT_S, nullptr, nullptr, nullptr);
    DefineCustomEnumVariable("interlock.lease_recovery",
                             "Whether new leases wait after a crash until old ones have expired.",
                             "With immediate, a lease can be granted twice after a crash.",
                             &lease_recovery, kSafe, kRecoveries, PGC_SIGHUP, 0, nullptr, nullptr,
                             nullptr);
}

extern "C" {

// Called by the script that creates the store.
Datum note_lease_store([[maybe_unused]] PG_FUNCTION_ARGS) {
    static bool registered = false;
    if (service != nullptr) {
        if (!registered)
            RegisterXactCallback(note_end_of_creation, nullptr);
        registered = true;
        created_store = true;
        note_store_change();
        LeaseDatabase* database = find_or_make_database(MyDatabaseId);
        if (database != nullptr && database->loaded)
            make_durable(database, 0);
    }
    PG_RETURN_VOID();
}
}

} // namespace interlock::lease
