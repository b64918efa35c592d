#include "lease/database_start.h"

#include "lease/grant.h"

namespace interlock::lease {

// R2, R11: when the last short lease from before the restart has certainly expired.
static int64 end_of_grace(const LeaseState& state, const Boot& boot) {
    if (!has_grace() || state.token_high == 0)
        return 0;
    if (is_same_boot(state.boot, boot) && state.timeline == GetWALInsertionTimeLine())
        return state.horizon;
    return service_began() + Max(state.span, longest_span());
}

// R11: what another timeline gave out after it was last heard of is below the next step of the
// timeline's bits, and so is what came before pg_upgrade, which begins to count timelines again.
static int64 first_token(const LeaseState& state) {
    constexpr int64 kTimelineStep = INT64CONST(1) << 48;
    constexpr int64 kLastStep = PG_INT64_MAX / kTimelineStep;
    static_assert(kTimelineStep % kTokenStep == 0);
    TimeLineID timeline = GetWALInsertionTimeLine();
    int64 step = Min(int64{timeline}, kLastStep);
    if (state.token_high > 0 && state.timeline != timeline)
        step = Max(step, Min(state.token_high / kTimelineStep + 1, kLastStep));
    return Max(state.token_high, step * kTimelineStep);
}

// With a clean stop, all is as it was. Otherwise what was saved is of another time. The page may
// have been written for this run already, by a call that was canceled before it used it.
static void take_over_state(LeaseDatabase* database, const LeaseState& state, const Boot& boot) {
    bool is_saved_one = state.run == database->saved_run || state.run == database->run;
    bool clean = database->saved && is_saved_one && state.token_high > 0 &&
                 state.timeline == GetWALInsertionTimeLine();
    if (database->saved && !clean)
        drop_leases_of(database->database);
    if (!clean || read_counter(&database->next_token) == 0)
        pg_atomic_write_u64(&database->next_token, static_cast<uint64>(first_token(state)));
    pg_atomic_write_u64(&database->token_end, clean ? state.token_high : 0);
    int64 serves_from = clean ? 0 : end_of_grace(state, boot);
    pg_atomic_write_u64(&database->serves_from, static_cast<uint64>(serves_from));
    pg_atomic_write_u32(&database->serves, clean || state.token_high == 0 ? 1 : 0);
    database->reclaim_from = clean ? 0 : state.epoch;
    database->reclaim_to = clean ? 0 : state.token_high;
    int64 horizon = is_same_boot(state.boot, boot) ? state.horizon : monotonic_now() + state.span;
    pg_atomic_write_u64(&database->horizon, static_cast<uint64>(clean ? horizon : serves_from));
    for (int i = 0; i < kFloors; i++)
        database->floors[i] = Max(clean ? database->floors[i] : 0, state.floors[i]);
    database->secret = state.secret;
    if (state.run != database->run)
        database->found_run = state.run;
    while (database->run == 0 || database->run == database->saved_run)
        database->run = pg_prng_uint64(&pg_global_prng_state);
}

// The remaining time of a long lease at the start of a run. After a reboot the system's clock
// decides, but not before the grace is over, as that clock may be wrong.
static int64 time_left(LeaseDatabase* database, const LongLease& record, const Boot& boot) {
    int64 now = monotonic_now();
    if (is_same_boot(record.boot, boot))
        return record.lease.expires - now;
    int64 left = Min(record.shown_expires - GetCurrentTimestamp(), record.lease.span);
    return Max(left, read_counter(&database->serves_from) - now);
}

static bool put_if_there_is_room(const LongLease& record, StorePlace place) {
    LeaseKey key = lease_key(MyDatabaseId, record.key, record.key_length);
    LWLockAcquire(partition_lock(key.partition), LW_EXCLUSIVE);
    Ref lease = put_former_lease(key, record.lease, record.text(), place);
    LWLockRelease(partition_lock(key.partition));
    return lease != 0;
}

static void put_long_lease(const LongLease& record, StorePlace place) {
    if (put_if_there_is_room(record, place))
        return;
    drop_expired_leases(); // which other databases keep until somebody looks for room
    if (!put_if_there_is_room(record, place))
        ereport(
            ERROR,
            (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
             errmsg("not enough lease slots to restore the leases from before the restart"),
             errhint("View interlock.usage shows which roles have them; break_leases ends those "
                     "of other databases. Or increase interlock.max_leases, and restart the "
                     "server.")));
}

static void load_long_leases(LeaseDatabase* database, Relation store, const Boot& boot) {
    change_long_leases(store, [&](LongLease* record, StorePlace place) {
        int64 left = time_left(database, *record, boot);
        record->lease.expires = monotonic_now() + left;
        record->boot = boot;
        if (left <= 0)
            record->lease.token = 0;
        else
            put_long_lease(*record, place);
    });
}

// LEA-50: a database that was made of a template has none of its leases, and so no grace. Its
// tokens continue above those of the template.
static LeaseState begin_copy(Relation store, const Boot& boot) {
    LeaseState own = {};
    change_long_leases(store, [](LongLease* record, StorePlace) { record->lease.token = 0; });
    change_state(store, [&](LeaseState* state) {
        state->database = MyDatabaseId;
        state->timeline = GetWALInsertionTimeLine();
        state->boot = boot;
        state->run = 0;
        state->epoch = state->token_high;
        state->horizon = 0;
        state->span = 0;
        own = *state;
    });
    return own;
}

// One backend loads, the others wait for it at the store.
static void load_leases(LeaseDatabase* database) {
    Relation store = open_store();
    LockRelation(store, ShareUpdateExclusiveLock);
    if (!database->loaded) {
        Boot boot = this_boot();
        LeaseState before = {};
        change_state(store, [&](LeaseState* state) { before = *state; });
        if (before.token_high != 0 && before.database != MyDatabaseId)
            before = begin_copy(store, boot);
        take_over_state(database, before, boot);
        forget_dropped_databases();
        load_long_leases(database, store, boot);
        make_durable(database, 0); // R10
        pg_write_barrier();
        database->loaded = true;
    }
    UnlockRelation(store, ShareUpdateExclusiveLock);
    close_store(store);
}

LeaseDatabase* lease_database() {
    LeaseDatabase* database = own_database();
    if (!database->loaded)
        load_leases(database);
    pg_read_barrier();
    return database;
}

} // namespace interlock::lease
