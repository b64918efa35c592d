#include "lease/save.h"

#include "lease/grant.h"

namespace interlock {

namespace {

constexpr const char* kFile = "pg_stat/pg_interlock.leases";
constexpr const char* kNewFile = "pg_stat/pg_interlock.leases.new";
constexpr uint32 kMagic = 0x494c5634;
constexpr uint32 kMagicOfBefore = 0x494c5633; // of 0.9.0

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
    alignas(8) int64 release_gives; // what follows is not in files of 0.9.0
    LeaseStay stay;
};

// A file that is written or read from its start, and its checksum.
struct Stream {
    FILE* file;
    pg_crc32c sum;
    bool well;
};

void put(Stream* stream, const void* bytes, size_t size) {
    COMP_CRC32C(stream->sum, bytes, size);
    stream->well = stream->well && fwrite(bytes, size, 1, stream->file) == 1;
}

bool get(Stream* stream, void* bytes, size_t size) {
    stream->well = stream->well && fread(bytes, size, 1, stream->file) == 1;
    return stream->well;
}

// --- Saving --------------------------------------------------------------------------------------

void save_database(Stream* stream, LeaseDatabase* database) {
    Saved kind = Saved::kDatabase;
    SavedDatabase saved = {};
    saved.database = database->database;
    saved.run = database->loaded ? database->run : database->saved_run;
    saved.next_token = static_cast<int64>(pg_atomic_read_u64(&database->next_token));
    memcpy(saved.floors, database->floors, sizeof(saved.floors));
    put(stream, &kind, sizeof(kind));
    put(stream, &saved, sizeof(saved));
}

void save_lease(Stream* stream, const Lease& lease) {
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
    if (lease.stay != LeaseStay::kNone)
        saved.release_gives = lease.expires - *lease.stay_until();
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
bool is_saved(const LeaseDatabase& database) {
    return database.loaded
               ? pg_atomic_read_u32(const_cast<pg_atomic_uint32*>(&database.serves)) != 0
               : database.saved;
}

// Those that have expired are lost, and their floors are saved: so they come first.
void put_all(Stream* stream) {
    SavedHeader header = {kMagic, this_boot()};
    put(stream, &header, sizeof(header));
    int64 now = monotonic_now();
    for (int i = 0; i < kLeasePartitions; i++)
        for_each_lease(i, [now](Ref ref) { drop_if_over(database_of(*lease_at(ref)), ref, now); });
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
    pg_crc32c sum = stream->sum;
    FIN_CRC32C(sum);
    put(stream, &sum, sizeof(sum));
}

// All processes have exited, and the last checkpoint was a shutdown checkpoint. Not so after a
// crash or an immediate shutdown, when memory may be in the middle of a change.
bool was_shut_down() {
    bool is_whole;
    ControlFileData* control = get_controlfile(DataDir, &is_whole);
    return is_whole && control->state == DB_SHUTDOWNED;
}

void save_leases(int code, Datum) {
    if (code != 0 || lease_database_number(0) == nullptr || !was_shut_down())
        return;
    Stream stream = {AllocateFile(kNewFile, PG_BINARY_W), 0, true};
    if (stream.file == nullptr) {
        ereport(LOG,
                (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", kNewFile)));
        return;
    }
    INIT_CRC32C(stream.sum);
    put_all(&stream);
    if (FreeFile(stream.file) != 0 || !stream.well) {
        ereport(LOG,
                (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", kNewFile),
                 errdetail("Leases will have a grace at the next start.")));
        unlink(kNewFile);
        return;
    }
    (void)durable_rename(kNewFile, kFile, LOG);
}

// --- Restoring -----------------------------------------------------------------------------------

bool is_whole(FILE* file) {
    pg_crc32c sum;
    pg_crc32c written;
    long left =
        fseek(file, 0, SEEK_END) == 0 ? ftell(file) - static_cast<long>(sizeof(written)) : 0;
    rewind(file);
    if (left < static_cast<long>(sizeof(SavedHeader)))
        return false;
    INIT_CRC32C(sum);
    char buffer[8192];
    while (left > 0) {
        size_t size = Min(static_cast<size_t>(left), sizeof(buffer));
        if (fread(buffer, size, 1, file) != 1)
            return false;
        COMP_CRC32C(sum, buffer, size);
        left -= static_cast<long>(size);
    }
    FIN_CRC32C(sum);
    bool well = fread(&written, sizeof(written), 1, file) == 1 && EQ_CRC32C(sum, written);
    rewind(file);
    return well;
}

void restore_database(Stream* stream) {
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
int64 left_after_reboot(const SavedLease& saved) {
    int64 left = Min(saved.shown_expires - GetCurrentTimestamp(), saved.lease.span);
    return Max(left, Min(saved.left, longest_short_lease()));
}

// Without room the lease is not lost: its database gets a grace.
void put_restored(LeaseDatabase* database, SavedLease saved, const char* bytes, bool same_boot) {
    int64 left = same_boot ? saved.lease.expires - monotonic_now() : left_after_reboot(saved);
    LeaseKey key = lease_key(saved.database, bytes, saved.key_length);
    if (left <= 0) {
        lose_token(database, key, saved.lease.role, saved.lease.token);
        return;
    }
    saved.lease.expires = monotonic_now() + left;
    LeaseText text = {bytes + saved.key_length, saved.holder_length, saved.stay,
                      saved.lease.expires - saved.release_gives};
    if (put_former_lease(key, saved.lease, text, saved.place) == 0)
        database->saved = false;
}

void restore_lease(Stream* stream, size_t size, bool same_boot) {
    SavedLease saved = {};
    char bytes[kMaxLeaseKeyBytes + kMaxHolderBytes];
    if (!get(stream, &saved, size) || saved.key_length > kMaxLeaseKeyBytes ||
        !get(stream, bytes, saved.key_length + saved.holder_length))
        return;
    LeaseDatabase* database = find_or_make_database(saved.database);
    if (database != nullptr)
        put_restored(database, saved, bytes, same_boot);
}

void get_all(Stream* stream) {
    SavedHeader header;
    if (!get(stream, &header, sizeof(header)) ||
        (header.magic != kMagic && header.magic != kMagicOfBefore))
        return;
    size_t size = header.magic == kMagic ? sizeof(SavedLease) : offsetof(SavedLease, release_gives);
    bool same_boot = is_same_boot(header.boot, this_boot());
    Saved kind;
    while (get(stream, &kind, sizeof(kind)) && kind != Saved::kEnd) {
        if (kind == Saved::kDatabase)
            restore_database(stream);
        else
            restore_lease(stream, size, same_boot);
    }
}

} // namespace

void restore_leases() {
    on_shmem_exit(save_leases, 0);
    FILE* file = AllocateFile(kFile, PG_BINARY_R);
    if (file == nullptr)
        return;
    Stream stream = {file, 0, true};
    // R10: a file that was read is never used again.
    if (durable_unlink(kFile, LOG) == 0 && is_whole(file))
        get_all(&stream);
    FreeFile(file);
}

} // namespace interlock
