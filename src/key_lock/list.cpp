// key_locks: holders and waiters of the keys of this database, from the lock manager.

#include "key_lock/list.h"

#include "key_lock/hold.h"
#include "key_lock/mode.h"
#include "key_lock/prepared.h"
#include "server/lock_status.h"
#include "server/result_row.h"

namespace interlock::key_lock {

// Runs body(instance) for every lock on a key.
template <typename Body>
static void for_each_instance(Body&& body) {
    LockData* data = GetLockStatusData();
    for (int i = 0; i < data->nelements; i++)
        if (is_key_tag(data->locks[i].locktag))
            body(data->locks[i]);
}

template <typename Body>
static void for_each_mode(LOCKMASK modes, Body&& body) {
    for (LOCKMODE mode = AccessShareLock; mode <= MaxLockMode; mode++)
        if ((modes & LOCKBIT_ON(mode)) != 0)
            body(mode);
}

namespace {

struct Listing {
    ReturnSetInfo* output;
    ShownNames names;
};

} // namespace

static void put_row(Listing* listing, const LockInstanceData& instance, LOCKMODE mode,
                    bool waiting);

extern "C" {
PG_FUNCTION_INFO_V1(list_key_locks);

Datum list_key_locks(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    Listing listing = {reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo), {}};
    for_each_instance([&](const LockInstanceData& instance) {
        for_each_mode(instance.holdMask,
                      [&](LOCKMODE mode) { put_row(&listing, instance, mode, false); });
        if (instance.waitLockMode != NoLock)
            put_row(&listing, instance, instance.waitLockMode, true);
    });
    return 0;
}
}

// Null: none of its names is known.
static const PreparedName* prepared_name(ShownNames* names, const LOCKTAG& tag) {
    if (!names->has_prepared)
        names->prepared = prepared_names();
    names->has_prepared = true;
    return names->prepared == nullptr ? nullptr
                                      : static_cast<const PreparedName*>(
                                            hash_search(names->prepared, &tag, HASH_FIND, nullptr));
}

static Oid role_of_lock(ShownNames* names, const LockInstanceData& lock) {
    if (lock.pid != 0)
        return role_of_process(lock.pid);
    const PreparedName* found = prepared_name(names, lock.locktag);
    return found != nullptr ? found->role : InvalidOid;
}

// Keys of idempotency are for the roles that use them, as a statement in pg_stat_activity is.
static bool may_see_name(ShownNames* names, const LockInstanceData& lock) {
    if (space_of(lock.locktag) != KeySpace::kIdempotency || lock.pid == MyProcPid ||
        has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS))
        return true;
    Oid role = role_of_lock(names, lock);
    return OidIsValid(role) && has_privs_of_role(GetUserId(), role);
}

// key, kind, mode, pid, waiting, waiting_since, hash
static void put_row(Listing* listing, const LockInstanceData& instance, LOCKMODE mode,
                    bool waiting) {
    const LOCKTAG& tag = instance.locktag;
    constexpr const char* kinds[kKeySpaces] = {"key", "applock", "idempotency", "applock"};
    KeySpace space = space_of(tag);
    bool is_prepared = instance.pid == 0;
    if (is_released(instance))
        return;
    const char* name = shown_name(&listing->names, instance);
    uint64 hash = (static_cast<uint64>(tag.locktag_field2) << 32) | tag.locktag_field3;
    Datum values[7] = {};
    bool nulls[7] = {name == nullptr, false, false, is_prepared, false,
                     !waiting || instance.waitStart == 0,
                     // By the hash a name can be guessed.
                     name == nullptr && !may_see_name(&listing->names, instance)};
    if (name != nullptr)
        values[0] = CStringGetTextDatum(name);
    values[1] = CStringGetTextDatum(kinds[static_cast<int>(space)]);
    values[2] = CStringGetTextDatum(lock_mode_name(tag, mode));
    values[3] = Int32GetDatum(instance.pid);
    values[4] = BoolGetDatum(waiting);
    values[5] = TimestampTzGetDatum(instance.waitStart);
    values[6] = Int64GetDatum(static_cast<int64>(hash));
    add_result_row(listing->output, values, nulls);
}

static bool same_tag(const LOCKTAG& left, const LOCKTAG& right) {
    return memcmp(&left, &right, sizeof(LOCKTAG)) == 0;
}

const char* shown_name(ShownNames* names, const LockInstanceData& lock) {
    if (!may_see_name(names, lock))
        return nullptr;
    const PreparedName* found = lock.pid == 0 ? prepared_name(names, lock.locktag) : nullptr;
    // What was prepared before the table existed has a name while a session uses the same one.
    return found != nullptr ? found->name : name_of(lock.locktag);
}

const char* lock_mode_name(const LOCKTAG& tag, LOCKMODE mode) {
    return is_applock(space_of(tag)) ? applock_mode_name(LOCKBIT_ON(mode)) : key_mode_name(mode);
}

bool is_released(const LockInstanceData& lock) {
    return lock.pid != 0 && knows_names() && name_of(lock.locktag) == nullptr;
}

char* others_to_json(const LOCKTAG& tag) {
    StringInfoData out;
    initStringInfo(&out);
    appendStringInfoChar(&out, '[');
    auto put = [&](const LockInstanceData& instance, LOCKMODE mode, bool waiting) {
        appendStringInfo(&out, "%s{\"pid\": %s, \"mode\": \"%s\", \"waiting\": %s}",
                         out.len > 1 ? ", " : "",
                         instance.pid == 0 ? "null" : psprintf("%d", instance.pid),
                         key_mode_name(mode), waiting ? "true" : "false");
    };
    for_each_instance([&](const LockInstanceData& instance) {
        if (!same_tag(instance.locktag, tag) || instance.pid == MyProcPid)
            return;
        for_each_mode(instance.holdMask, [&](LOCKMODE mode) { put(instance, mode, false); });
        if (instance.waitLockMode != NoLock)
            put(instance, instance.waitLockMode, true);
    });
    appendStringInfoChar(&out, ']');
    return out.data;
}

bool is_excluded_by_others(const LOCKTAG& tag, LOCKMODE mode, LOCKMASK held) {
    LOCKMASK kept_waiting = 0;
    for_each_mode(held, [&](LOCKMODE mine) { kept_waiting |= excluded_by(mine); });
    LOCKMASK theirs = 0;
    for_each_instance([&](const LockInstanceData& instance) {
        if (same_tag(instance.locktag, tag) && instance.pid != MyProcPid)
            theirs |= instance.holdMask | (LOCKBIT_ON(instance.waitLockMode) & ~kept_waiting);
    });
    return (excluded_by(mode) & theirs) != 0;
}

bool is_held_by_others(const LockName& name, LOCKMODE mode) {
    LOCKTAG tag;
    int count = 0;
    if (find_tag(name, &tag))
        (void)GetLockConflicts(&tag, mode, &count);
    return count > 0;
}

} // namespace interlock::key_lock
