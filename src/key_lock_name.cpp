#include "key_lock_name.h"

#include "shared_memory.h"

namespace interlock {

// Two names that are longer than what is shown are taken for equal when 128 bits of hash, the
// length and the bytes shown are equal.
struct NameEntry {
    LOCKTAG tag; // hash key
    uint32 pins;
    uint32 length;
    uint64 check; // of a long name: a second hash, unrelated to the one in the tag
    char shown[kNameShown];
};

namespace {

constexpr const char* kTranche = "pg_interlock key names";
constexpr const char* kDisplaced = "pg_interlock displaced key names";
constexpr int kPartitions = 16;
constexpr size_t kDisplacedSize = sizeof(uint32) * kPartitions;

// field4 is kFirstField4 + space * kTwins + twin. pg_advisory_* uses 1 and 2.
constexpr uint16 kFirstField4 = 18752;
constexpr uint16 kTwins = 16;

int key_names = 8192;
int key_hash_bits = 64;

HTAB* names = nullptr;
LWLockPadded* locks = nullptr;
uint32* displaced = nullptr; // how many entries of each partition have another tag than their first

constexpr uint64 kCheckSeed = 0x696e7465726c6f63;

bool is_long(const LockName& name) { return name.length >= kNameShown; }

uint64 check_of(const LockName& name) {
    return hash_bytes_extended(reinterpret_cast<const unsigned char*>(name.bytes),
                               static_cast<int>(name.length), kCheckSeed);
}

// The twins of one hash are in one partition.
uint32 hash_tag(const void* key, Size) {
    const auto* tag = static_cast<const LOCKTAG*>(key);
    return tag->locktag_field1 ^ tag->locktag_field2 ^ tag->locktag_field3;
}

uint32 partition_of(const LOCKTAG& tag) { return hash_tag(&tag, sizeof(tag)) % kPartitions; }

LWLock* lock_of(const LOCKTAG& tag) { return &locks[partition_of(tag)].lock; }

LOCKTAG tag_of(const LockName& name, uint16 twin) {
    LOCKTAG tag;
    SET_LOCKTAG_ADVISORY(
        tag, MyDatabaseId, static_cast<uint32>(name.hash >> 32), static_cast<uint32>(name.hash),
        static_cast<uint16>(kFirstField4 + static_cast<uint16>(name.space) * kTwins + twin));
    return tag;
}

NameEntry* find_entry(const LOCKTAG& tag, HASHACTION action, bool* found = nullptr) {
    return static_cast<NameEntry*>(
        hash_search_with_hash_value(names, &tag, hash_tag(&tag, sizeof(tag)), action, found));
}

int shown_length(const LockName& name) {
    int length = static_cast<int>(name.length);
    return is_long(name) ? pg_mbcliplen(name.bytes, length, kNameShown - 1) : length;
}

bool is_entry_of(const NameEntry& entry, const LockName& name) {
    return entry.length == name.length &&
           memcmp(entry.shown, name.bytes, shown_length(name)) == 0 &&
           (!is_long(name) || entry.check == check_of(name));
}

void fill_entry(NameEntry* entry, const LockName& name) {
    int shown = shown_length(name);
    entry->pins = 0;
    entry->length = static_cast<uint32>(name.length);
    entry->check = is_long(name) ? check_of(name) : 0;
    memcpy(entry->shown, name.bytes, shown);
    entry->shown[shown] = '\0';
}

// Which of the tags of its hash is the name's: that of its entry, else the first that is free,
// kTwins when none is. While nothing in the partition is displaced, that is the first or the
// second.
uint16 find_twin(const LockName& name) {
    if (displaced[partition_of(tag_of(name, 0))] == 0)
        return 0;
    uint16 free_twin = kTwins;
    for (uint16 twin = kTwins; twin-- > 0;) {
        NameEntry* entry = find_entry(tag_of(name, twin), HASH_FIND);
        if (entry == nullptr)
            free_twin = twin;
        else if (is_entry_of(*entry, name))
            return twin;
    }
    return free_twin;
}

// Under the partition's lock: the entry of the name, else a new one.
Pinned find_or_enter(const LockName& name, NameEntry** entry) {
    for (uint16 twin = find_twin(name); twin < kTwins; twin++) {
        bool found;
        *entry = find_entry(tag_of(name, twin), HASH_ENTER_NULL, &found);
        if (*entry == nullptr)
            return Pinned::kNoRoom;
        if (!found) {
            fill_entry(*entry, name);
            displaced[partition_of((*entry)->tag)] += twin > 0;
        } else if (!is_entry_of(**entry, name)) {
            continue;
        }
        (*entry)->pins++;
        return Pinned::kYes;
    }
    return Pinned::kTooManyTwins;
}

bool same_hash(const LOCKTAG& left, const LOCKTAG& right) {
    return left.locktag_field1 == right.locktag_field1 &&
           left.locktag_field2 == right.locktag_field2 &&
           left.locktag_field3 == right.locktag_field3 && is_key_tag(right) &&
           space_of(left) == space_of(right);
}

// Names of prepared transactions are not kept: which of two names with one hash it holds cannot be
// known.
bool held_by_prepared_transaction(const LOCKTAG& tag) {
    LockData* data = GetLockStatusData();
    for (int i = 0; i < data->nelements; i++)
        if (data->locks[i].pid == 0 && same_hash(tag, data->locks[i].locktag))
            return true;
    return false;
}

void request_memory() {
    RequestAddinShmemSpace(hash_estimate_size(key_names, sizeof(NameEntry)));
    RequestAddinShmemSpace(kDisplacedSize);
    RequestNamedLWLockTranche(kTranche, kPartitions);
}

void attach_memory() {
    HASHCTL control = {};
    control.keysize = sizeof(LOCKTAG);
    control.entrysize = sizeof(NameEntry);
    control.hash = hash_tag;
    control.num_partitions = kPartitions;
    names = ShmemInitHash(kTranche, key_names, key_names, &control,
                          HASH_ELEM | HASH_FUNCTION | HASH_PARTITION | HASH_FIXED_SIZE);
    locks = GetNamedLWLockTranche(kTranche);
    bool found;
    displaced = static_cast<uint32*>(ShmemInitStruct(kDisplaced, kDisplacedSize, &found));
    if (!found)
        memset(displaced, 0, kDisplacedSize);
}

} // namespace

uint64 hash_name(const char* bytes, size_t length) {
    uint64 hash = hash_bytes_extended(reinterpret_cast<const unsigned char*>(bytes),
                                      static_cast<int>(length), 0);
    return key_hash_bits < 64 ? hash & ((UINT64CONST(1) << key_hash_bits) - 1) : hash;
}

int compare_names(const LockName& left, const LockName& right) {
    int order = memcmp(left.bytes, right.bytes, Min(left.length, right.length));
    return order != 0 ? order : (left.length > right.length) - (left.length < right.length);
}

Pinned pin_name(const LockName& name, LOCKTAG* tag, NameEntry** entry) {
    *tag = tag_of(name, 0);
    if (names == nullptr)
        return Pinned::kYes;
    LWLock* lock = lock_of(*tag);
    LWLockAcquire(lock, LW_EXCLUSIVE);
    Pinned pinned = find_or_enter(name, entry);
    LWLockRelease(lock);
    if (pinned != Pinned::kYes)
        return pinned;
    *tag = (*entry)->tag;
    if (!is_displaced(*tag) || !held_by_prepared_transaction(*tag))
        return Pinned::kYes;
    unpin_name(*entry);
    return Pinned::kAmbiguous;
}

void refuse_unpinned(const LockName& name, Pinned pinned) {
    if (pinned == Pinned::kNoRoom)
        ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                        errmsg("too many keys are in use at once"),
                        errhint("You may need to increase interlock.key_names.")));
    if (pinned == Pinned::kTooManyTwins)
        ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                        errmsg("too many keys with the same hash are in use at once")));
    ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE),
                    errmsg("key \"%s\" cannot be told from another while a prepared transaction "
                           "holds one with the same hash",
                           pnstrdup(name.bytes, shown_length(name))),
                    errhint("Commit or roll back the prepared transactions.")));
}

void unpin_name(NameEntry* entry) {
    LOCKTAG tag = entry->tag;
    LWLock* lock = lock_of(tag);
    LWLockAcquire(lock, LW_EXCLUSIVE);
    if (--entry->pins == 0) {
        find_entry(tag, HASH_REMOVE);
        displaced[partition_of(tag)] -= is_displaced(tag);
    }
    LWLockRelease(lock);
}

bool is_key_tag(const LOCKTAG& tag) {
    return tag.locktag_type == LOCKTAG_ADVISORY && tag.locktag_lockmethodid == USER_LOCKMETHOD &&
           tag.locktag_field1 == MyDatabaseId && tag.locktag_field4 >= kFirstField4 &&
           tag.locktag_field4 < kFirstField4 + kKeySpaces * kTwins;
}

KeySpace space_of(const LOCKTAG& tag) {
    return static_cast<KeySpace>((tag.locktag_field4 - kFirstField4) / kTwins);
}

bool is_displaced(const LOCKTAG& tag) { return (tag.locktag_field4 - kFirstField4) % kTwins != 0; }

bool knows_names() { return names != nullptr; }

char* name_of(const LOCKTAG& tag) {
    if (names == nullptr)
        return nullptr;
    char shown[kNameShown] = "";
    LWLock* lock = lock_of(tag);
    LWLockAcquire(lock, LW_SHARED);
    NameEntry* entry = find_entry(tag, HASH_FIND);
    if (entry != nullptr)
        memcpy(shown, entry->shown, kNameShown);
    LWLockRelease(lock);
    return entry != nullptr ? pstrdup(shown) : nullptr;
}

void register_key_names() {
    DefineCustomIntVariable(
        "interlock.key_names", "How many different keys may be held or waited for at once.",
        nullptr, &key_names, 8192, 64, 1 << 20, PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("interlock.key_hash_bits",
                            "Bits of a key's hash that are used: fewer make collisions, to test.",
                            nullptr, &key_hash_bits, 64, 1, 64, PGC_POSTMASTER,
                            GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL, nullptr, nullptr, nullptr);
    add_shared_area({request_memory, attach_memory});
}

} // namespace interlock
