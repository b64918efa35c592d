#include "key_lock/name.h"

#include "server/shared_memory.h"

namespace interlock::key_lock {

constexpr uint16 kNameUsers = 4;

// Two names that are longer than the shown part count as equal when 128 bits of hash, the length
// and the shown bytes are equal.
struct NameEntry {
    LOCKTAG tag; // hash key
    uint32 pins;
    uint32 length;
    uint64 check; // of a long name: a second hash, unrelated to the one in the tag
    struct {
        uint32 pins;
        UsageLine line;
    } users[kNameUsers]; // by role; pins of further ones are charged one by one
    char shown[kNameShown];
};

constexpr const char* kTranche = "pg_interlock key names";
constexpr const char* kDisplaced = "pg_interlock displaced key names";
constexpr int kPartitions = 16;
constexpr size_t kDisplacedSize = sizeof(uint32) * kPartitions;

// field4 is kFirstField4 + space * kTwins + twin. pg_advisory_* uses 1 and 2.
constexpr uint16 kFirstField4 = 18752;
constexpr uint16 kTwins = 16;

static int key_names = 8192;
static int max_key_names_per_role = kHalf;
static int key_hash_bits = 64;

static HTAB* names = nullptr;
static LWLockPadded* locks = nullptr;
static uint32* displaced =
    nullptr; // how many entries of each partition have another tag than their first

namespace {

struct NameUsage {
    alignas(PG_CACHE_LINE_SIZE) pg_atomic_uint32 names;
    RoleUsage by_role;
};

} // namespace

constexpr const char* kUsage = "pg_interlock key name usage";
static NameUsage* usage = nullptr;

constexpr uint64 kCheckSeed = 0x696e7465726c6f63;

static bool is_long(const LockName& name) { return name.length >= kNameShown; }

static uint64 check_of(const LockName& name) {
    return hash_bytes_extended(reinterpret_cast<const unsigned char*>(name.bytes),
                               static_cast<int>(name.length), kCheckSeed);
}

// The twins of one hash are in one partition.
static uint32 hash_tag(const void* key, Size) {
    const auto* tag = static_cast<const LOCKTAG*>(key);
    return tag->locktag_field1 ^ tag->locktag_field2 ^ tag->locktag_field3;
}

static uint32 partition_of(const LOCKTAG& tag) { return hash_tag(&tag, sizeof(tag)) % kPartitions; }

static LWLock* lock_of(const LOCKTAG& tag) { return &locks[partition_of(tag)].lock; }

static LOCKTAG make_tag(KeySpace space, uint64 hash, uint16 twin) {
    LOCKTAG tag;
    SET_LOCKTAG_ADVISORY(
        tag, MyDatabaseId, static_cast<uint32>(hash >> 32), static_cast<uint32>(hash),
        static_cast<uint16>(kFirstField4 + static_cast<uint16>(space) * kTwins + twin));
    return tag;
}

static LOCKTAG tag_of(const LockName& name, uint16 twin) {
    return make_tag(name.space, name.hash, twin);
}

static NameEntry* find_entry(const LOCKTAG& tag, HASHACTION action, bool* found = nullptr) {
    return static_cast<NameEntry*>(
        hash_search_with_hash_value(names, &tag, hash_tag(&tag, sizeof(tag)), action, found));
}

static int shown_length(const LockName& name) {
    int length = static_cast<int>(name.length);
    return is_long(name) ? pg_mbcliplen(name.bytes, length, kNameShown - 1) : length;
}

static bool is_entry_of(const NameEntry& entry, const LockName& name) {
    return entry.length == name.length &&
           memcmp(entry.shown, name.bytes, shown_length(name)) == 0 &&
           (!is_long(name) || entry.check == check_of(name));
}

static void fill_entry(NameEntry* entry, const LockName& name) {
    int shown = shown_length(name);
    entry->pins = 0;
    for (auto& user : entry->users)
        user.pins = 0;
    entry->length = static_cast<uint32>(name.length);
    entry->check = is_long(name) ? check_of(name) : 0;
    memcpy(entry->shown, name.bytes, shown);
    entry->shown[shown] = '\0';
}

// The number of the name's tag among those of its hash: that of its entry, else the first free one,
// kTwins when none is. While nothing in the partition is displaced, that is the first or the
// second.
static uint16 find_twin(const LockName& name) {
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

// Counts a new name. False: the limit is reached.
static bool count_name(bool privileged) {
    uint32 before = pg_atomic_fetch_add_u32(&usage->names, 1);
    if (privileged || before < static_cast<uint32>(key_names))
        return true;
    pg_atomic_fetch_sub_u32(&usage->names, 1);
    return false;
}

static void remove_entry(NameEntry* entry) {
    LOCKTAG tag = entry->tag;
    find_entry(tag, HASH_REMOVE);
    displaced[partition_of(tag)] -= is_displaced(tag);
    pg_atomic_fetch_sub_u32(&usage->names, 1);
}

// Where the entry counts the pins of the role, or could; kNameUsers: nowhere.
static uint16 user_of(const NameEntry& entry, Oid role) {
    uint16 free_user = kNameUsers;
    for (uint16 i = kNameUsers; i-- > 0;) {
        if (entry.users[i].pins == 0)
            free_user = i;
        else if (role_of_line(&usage->by_role, entry.users[i].line) == role)
            return i;
    }
    return free_user;
}

static uint32 name_share() { return share_of(max_key_names_per_role, key_names); }

// Counts the pin of this role. False: the name would exceed its share.
static bool count_pin(NameEntry* entry, bool privileged, NamePin* pin) {
    uint16 user = entry->pins == 0 ? 0 : user_of(*entry, GetUserId());
    *pin = {entry, user, 0};
    bool has_others = user < kNameUsers && entry->users[user].pins > 0;
    if (!has_others && !add_usage(&usage->by_role, GetUserId(), 1,
                                  privileged ? kNoLimit : name_share(), &pin->line))
        return false;
    entry->pins++;
    if (user < kNameUsers)
        entry->users[user].pins++;
    if (user < kNameUsers && !has_others)
        entry->users[user].line = pin->line;
    return true;
}

static void discount_pin(const NamePin& pin) {
    pin.entry->pins--;
    if (pin.user == kNameUsers)
        subtract_usage(&usage->by_role, pin.line, 1);
    else if (--pin.entry->users[pin.user].pins == 0)
        subtract_usage(&usage->by_role, pin.entry->users[pin.user].line, 1);
}

// Under the partition's lock: the entry of the name, else a new one.
static Pinned find_or_enter(const LockName& name, bool privileged, NamePin* pin) {
    for (uint16 twin = find_twin(name); twin < kTwins; twin++) {
        bool found;
        NameEntry* entry = find_entry(tag_of(name, twin), HASH_ENTER_NULL, &found);
        if (entry == nullptr)
            return Pinned::kNoRoom;
        if (!found && !count_name(privileged)) {
            find_entry(entry->tag, HASH_REMOVE);
            return Pinned::kNoRoom;
        }
        if (!found) {
            fill_entry(entry, name);
            displaced[partition_of(entry->tag)] += twin > 0;
        } else if (!is_entry_of(*entry, name)) {
            continue;
        }
        if (count_pin(entry, privileged, pin))
            return Pinned::kYes;
        if (!found)
            remove_entry(entry);
        return Pinned::kRoleIsFull;
    }
    return Pinned::kTooManyTwins;
}

static Pinned pin_under_lock(const LockName& name, const LOCKTAG& tag, bool privileged,
                             NamePin* pin) {
    LWLock* lock = lock_of(tag);
    LWLockAcquire(lock, LW_EXCLUSIVE);
    Pinned pinned = find_or_enter(name, privileged, pin);
    LWLockRelease(lock);
    return pinned;
}

static bool same_hash(const LOCKTAG& left, const LOCKTAG& right) {
    return left.locktag_field1 == right.locktag_field1 &&
           left.locktag_field2 == right.locktag_field2 &&
           left.locktag_field3 == right.locktag_field3 && is_key_tag(right) &&
           space_of(left) == space_of(right);
}

// It may hold another name with that hash.
static bool held_by_prepared_transaction(const LOCKTAG& tag) {
    LockData* data = GetLockStatusData();
    for (int i = 0; i < data->nelements; i++)
        if (data->locks[i].pid == 0 && same_hash(tag, data->locks[i].locktag))
            return true;
    return false;
}

static int all_names() { return key_names + superuser_reserve(key_names); }

static void request_memory() {
    RequestAddinShmemSpace(hash_estimate_size(all_names(), sizeof(NameEntry)));
    RequestAddinShmemSpace(kDisplacedSize);
    RequestAddinShmemSpace(sizeof(NameUsage) + PG_CACHE_LINE_SIZE);
    RequestNamedLWLockTranche(kTranche, kPartitions);
}

static void attach_memory() {
    HASHCTL control = {};
    control.keysize = sizeof(LOCKTAG);
    control.entrysize = sizeof(NameEntry);
    control.hash = hash_tag;
    control.num_partitions = kPartitions;
    names = shared_hash(kTranche, all_names(), &control,
                        HASH_ELEM | HASH_FUNCTION | HASH_PARTITION | HASH_FIXED_SIZE);
    locks = GetNamedLWLockTranche(kTranche);
    bool found;
    displaced = static_cast<uint32*>(ShmemInitStruct(kDisplaced, kDisplacedSize, &found));
    if (!found)
        memset(displaced, 0, kDisplacedSize);
    usage = static_cast<NameUsage*>(ShmemInitStruct(kUsage, sizeof(NameUsage), &found));
    if (!found) {
        pg_atomic_init_u32(&usage->names, 0);
        initialize_usage(&usage->by_role);
    }
}

uint64 hash_name(const char* bytes, size_t length) {
    uint64 hash = hash_bytes_extended(reinterpret_cast<const unsigned char*>(bytes),
                                      static_cast<int>(length), 0);
    return key_hash_bits < 64 ? hash & ((UINT64CONST(1) << key_hash_bits) - 1) : hash;
}

int compare_names(const LockName& left, const LockName& right) {
    int order = memcmp(left.bytes, right.bytes, Min(left.length, right.length));
    return order != 0 ? order : (left.length > right.length) - (left.length < right.length);
}

LOCKTAG first_tag(KeySpace space, uint64 hash) { return make_tag(space, hash, 0); }

bool find_tag(const LockName& name, LOCKTAG* tag) {
    *tag = tag_of(name, 0);
    if (names == nullptr)
        return true;
    LWLock* lock = lock_of(*tag);
    LWLockAcquire(lock, LW_SHARED);
    uint16 twin = find_twin(name);
    *tag = tag_of(name, twin == kTwins ? 0 : twin);
    NameEntry* entry = find_entry(*tag, HASH_FIND);
    bool is_another = entry != nullptr && !is_entry_of(*entry, name);
    LWLockRelease(lock);
    return !is_another;
}

Pinned pin_name(const LockName& name, LOCKTAG* tag, NamePin* pin) {
    *tag = tag_of(name, 0);
    if (names == nullptr)
        return Pinned::kYes;
    Pinned pinned = pin_under_lock(name, *tag, false, pin);
    if ((pinned == Pinned::kNoRoom || pinned == Pinned::kRoleIsFull) && superuser())
        pinned = pin_under_lock(name, *tag, true, pin);
    if (pinned != Pinned::kYes)
        return pinned;
    *tag = pin->entry->tag;
    if (!is_displaced(*tag) || !held_by_prepared_transaction(*tag))
        return Pinned::kYes;
    unpin_name(*pin);
    return Pinned::kAmbiguous;
}

void refuse_unpinned(const LockName& name, Pinned pinned) {
    if (pinned == Pinned::kNoRoom)
        ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                        errmsg("too many keys are in use at once"),
                        errhint("You may need to increase interlock.key_names. View "
                                "interlock.usage shows which roles use them.")));
    if (pinned == Pinned::kRoleIsFull)
        ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                        errmsg("role \"%s\" has used up its share of keys", role_name(GetUserId())),
                        errdetail("One role may use %u keys at once.", name_share()),
                        errhint("End transactions, or increase "
                                "interlock.max_key_names_per_role.")));
    if (pinned == Pinned::kTooManyTwins)
        ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                        errmsg("too many keys with the same hash are in use at once")));
    ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE),
                    errmsg("key \"%s\" cannot be distinguished from another while a prepared "
                           "transaction holds one with the same hash",
                           pnstrdup(name.bytes, shown_length(name))),
                    errhint("Commit or roll back the prepared transactions.")));
}

void unpin_name(const NamePin& pin) {
    LWLock* lock = lock_of(pin.entry->tag);
    LWLockAcquire(lock, LW_EXCLUSIVE);
    discount_pin(pin);
    if (pin.entry->pins == 0)
        remove_entry(pin.entry);
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

NamesUse names_use() {
    if (usage == nullptr)
        return {};
    return {pg_atomic_read_u32(&usage->names), static_cast<uint32>(key_names), name_share(),
            &usage->by_role};
}

void visit_name_uses(void (*visit)(void* context, Oid role, Oid database), void* context) {
    if (names == nullptr)
        return;
    for (int i = 0; i < kPartitions; i++)
        LWLockAcquire(&locks[i].lock, LW_SHARED);
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, names);
    while (auto* entry = static_cast<NameEntry*>(hash_seq_search(&scan)))
        for (const auto& user : entry->users)
            if (user.pins > 0)
                visit(context, role_of_line(&usage->by_role, user.line), entry->tag.locktag_field1);
    for (int i = 0; i < kPartitions; i++)
        LWLockRelease(&locks[i].lock);
}

void preload_key_names() {
    DefineCustomIntVariable(
        "interlock.key_names", "How many different keys may be held or waited for at once.",
        nullptr, &key_names, 8192, 64, 1 << 20, PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("interlock.max_key_names_per_role",
                            "How many different keys one role may hold or wait for at once.",
                            "-1 is half of interlock.key_names. Superusers are not limited.",
                            &max_key_names_per_role, kHalf, kHalf, 1 << 28, PGC_SIGHUP, 0, nullptr,
                            nullptr, nullptr);
    DefineCustomIntVariable("interlock.key_hash_bits",
                            "Bits of a key's hash that are used: fewer make collisions, to test.",
                            nullptr, &key_hash_bits, 64, 1, 64, PGC_POSTMASTER,
                            GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL, nullptr, nullptr, nullptr);
    add_shared_area({request_memory, attach_memory});
}

} // namespace interlock::key_lock
