#include "lease/clean_restart.h"

#include "lease/grant.h"
#include "server/checked_file.h"

namespace interlock::lease {

constexpr const char* kFile = "pg_stat/pg_interlock.leases";
constexpr uint32 kMagic = 0x494c5635;

namespace {

struct SavedHeader {
    uint32 magic;
    Boot boot;
};

enum class Saved : uint32 { kDatabase, kLease, kEnd };

struct SavedDatabase {
    Oid database;
    uint64 run;
    int64 next_token;
    int64 floors[kFloors];
};

struct SavedLease {
    Oid database;
    LeaseInfo lease;
    int64 left; // at the stop
    TimestampTz shown_expires;
    StorePlace place;
    uint8 holder_length;
    uint16 key_length;
    LeaseStay stay;
    uint32 release_gives;
};

} // namespace

// --- Saving --------------------------------------------------------------------------------------

static void save_database(CheckedFile* stream, LeaseDatabase* database) {
    Saved kind = Saved::kDatabase;
    SavedDatabase saved = {};
    saved.database = database->database;
    saved.run = database->loaded ? database->run : database->saved_run;
    saved.next_token = static_cast<int64>(pg_atomic_read_u64(&database->next_token));
    memcpy(saved.floors, database->floors, sizeof(saved.floors));
    put(stream, &kind, sizeof(kind));
    put(stream, &saved, sizeof(saved));
}

static void save_lease(CheckedFile* stream, const Lease& lease) {
    const LeaseNode& node = *node_at(lease.node);
    Saved kind = Saved::kLease;
    SavedLease saved = {};
    saved.database = node.database;
    saved.lease = lease;
    saved.left = lease.expires - monotonic_now();
    saved.shown_expires = shown_time(lease.expires);
    saved.place = lease.place;
    saved.holder_length = lease.holder_length;
    saved.stay = lease.stay;
    saved.release_gives = lease.release_gives;
    saved.key_length = node.length;
    put(stream, &kind, sizeof(kind));
    put(stream, &saved, sizeof(saved));
    KeyRoom room;
    put(stream, key_bytes(node, room), node.length);
    char holder[kMaxHolderBytes];
    lease.copy_holder(holder);
    put(stream, holder, lease.holder_length);
}

// In the grace, and until the new epoch has begun, memory does not have all leases: then the next
// start has a grace, too. Restored leases that were never used are saved again.
static bool is_saved(const LeaseDatabase& database) {
    return database.loaded
               ? pg_atomic_read_u32(const_cast<pg_atomic_uint32*>(&database.serves)) != 0
               : database.saved;
}

// Those that have expired are lost, and their floors are saved: so they come first.
static void put_all(CheckedFile* stream) {
    SavedHeader header = {kMagic, this_boot()};
    put(stream, &header, sizeof(header));
    for (int i = 0; i < kLeasePartitions; i++)
        drop_expired_in(i);
    LeaseDatabase* database;
    for (int i = 0; (database = lease_database_number(i)) != nullptr; i++)
        if (OidIsValid(database->database) && is_saved(*database))
            save_database(stream, database);
    for (int i = 0; i < kLeasePartitions; i++)
        for_each_lease(i, [stream](Ref ref) {
            const Lease& lease = *lease_at(ref);
            if (!lease.ended && is_saved(*database_of(lease)))
                save_lease(stream, lease);
        });
    Saved end = Saved::kEnd;
    put(stream, &end, sizeof(end));
}

static void save_leases(int code, Datum) {
    if (code == 0 && lease_database_number(0) != nullptr && was_shut_down(false) &&
        !write_checked_file(kFile, put_all))
        ereport(LOG,
                (errmsg("could not save the leases: the next start begins with a grace period")));
}

// --- Restoring -----------------------------------------------------------------------------------

static void restore_database(CheckedFile* stream) {
    SavedDatabase saved;
    if (!get(stream, &saved, sizeof(saved)))
        return;
    LeaseDatabase* database = find_or_make_database(saved.database);
    if (database == nullptr)
        return;
    database->saved = true;
    database->saved_run = saved.run;
    pg_atomic_write_u64(&database->next_token, static_cast<uint64>(saved.next_token));
    memcpy(database->floors, saved.floors, sizeof(saved.floors));
}

// The system's clock decides, but at least what a short lease had left, as that clock may be wrong.
static int64 left_after_reboot(const SavedLease& saved) {
    int64 left = Min(saved.shown_expires - GetCurrentTimestamp(), saved.lease.span);
    return Max(left, Min(saved.left, longest_short_lease()));
}

// Without room the lease is not lost: its database gets a grace.
static void put_restored(LeaseDatabase* database, SavedLease saved, const char* bytes,
                         bool same_boot) {
    int64 left = same_boot ? saved.lease.expires - monotonic_now() : left_after_reboot(saved);
    LeaseKey key = lease_key(saved.database, bytes, saved.key_length);
    if (left <= 0) {
        lose_token(database, key, saved.lease.role, saved.lease.token);
        return;
    }
    saved.lease.expires = monotonic_now() + left;
    LeaseText text = {bytes + saved.key_length, saved.holder_length, saved.stay,
                      saved.release_gives};
    if (put_former_lease(key, saved.lease, text, saved.place) == 0)
        database->saved = false;
}

static void restore_lease(CheckedFile* stream, bool same_boot) {
    SavedLease saved = {};
    char bytes[kMaxLeaseKeyBytes + kMaxHolderBytes];
    if (!get(stream, &saved, sizeof(saved)) || saved.key_length > kMaxLeaseKeyBytes ||
        !get(stream, bytes, saved.key_length + saved.holder_length))
        return;
    LeaseDatabase* database = find_or_make_database(saved.database);
    if (database != nullptr)
        put_restored(database, saved, bytes, same_boot);
}

static void get_all(CheckedFile* stream) {
    SavedHeader header;
    if (!get(stream, &header, sizeof(header)) || header.magic != kMagic)
        return;
    bool same_boot = is_same_boot(header.boot, this_boot());
    Saved kind;
    while (get(stream, &kind, sizeof(kind)) && kind != Saved::kEnd) {
        if (kind == Saved::kDatabase)
            restore_database(stream);
        else
            restore_lease(stream, same_boot);
    }
}

void restore_leases() {
    on_shmem_exit(save_leases, 0);
    read_checked_file(kFile, sizeof(SavedHeader), get_all); // R10
}

} // namespace interlock::lease
