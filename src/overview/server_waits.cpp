#include "overview/server_waits.h"

#include "key_lock/list.h"
#include "server/lock_status.h"
#include "server/waits.h"
#include "version/turn.h"

namespace interlock::overview {

namespace {

// All that hold a lock or wait for it; only locks that are waited for.
struct AwaitedLock {
    LOCKTAG tag;   // hash key
    List* holders; // LockInstanceData
    List* waiters; // the one that has waited longest first
};

struct Report {
    List** waits;
    LockStatus locks;
    HTAB* awaited;
    HTAB* rows; // the row that a process has locked or waits for, by its number
    key_lock::ShownNames names;
};

struct RowOf {
    int pid; // hash key
    LOCKTAG tag;
};

} // namespace

static HTAB* make_table(const char* name, Size key, Size entry) {
    HASHCTL control = {};
    control.keysize = key;
    control.entrysize = entry;
    control.hcxt = CurrentMemoryContext;
    return hash_create(name, 256, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static int by_start(const ListCell* left, const ListCell* right) {
    // One that has only just begun has none yet.
    auto start = [](const ListCell* cell) {
        TimestampTz since = static_cast<const LockInstanceData*>(lfirst(cell))->waitStart;
        return since == 0 ? DT_NOEND : since;
    };
    return (start(left) > start(right)) - (start(left) < start(right));
}

static void find_waiters(Report* report) {
    for (const LockInstanceData& lock : report->locks) {
        if (lock.waitLockMode == NoLock)
            continue;
        bool found;
        auto* entry = static_cast<AwaitedLock*>(
            hash_search(report->awaited, &lock.locktag, HASH_ENTER, &found));
        if (!found)
            entry->holders = entry->waiters = NIL;
        entry->waiters = lappend(entry->waiters, const_cast<LockInstanceData*>(&lock));
    }
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, report->awaited);
    while (auto* entry = static_cast<AwaitedLock*>(hash_seq_search(&scan)))
        list_sort(entry->waiters, by_start);
}

// Who waits for the transaction that has written a row has locked the row's place in the queue.
static void find_holders(Report* report) {
    for (const LockInstanceData& lock : report->locks) {
        if (lock.holdMask == 0)
            continue;
        auto* entry = static_cast<AwaitedLock*>(
            hash_search(report->awaited, &lock.locktag, HASH_FIND, nullptr));
        if (entry != nullptr)
            entry->holders = lappend(entry->holders, const_cast<LockInstanceData*>(&lock));
        if (lock.locktag.locktag_type != LOCKTAG_TUPLE || lock.pid == 0)
            continue;
        auto* row = static_cast<RowOf*>(hash_search(report->rows, &lock.pid, HASH_ENTER, nullptr));
        row->tag = lock.locktag;
    }
}

// --- The name of a lock --------------------------------------------------------------------------

static Oid table_of(const LOCKTAG& tag) {
    bool is_table = tag.locktag_type == LOCKTAG_RELATION ||
                    tag.locktag_type == LOCKTAG_RELATION_EXTEND ||
                    tag.locktag_type == LOCKTAG_PAGE || tag.locktag_type == LOCKTAG_TUPLE;
    return is_table && tag.locktag_field1 == MyDatabaseId ? tag.locktag_field2 : InvalidOid;
}

static const char* name_of_table(Oid relid) {
    char* name = get_rel_name(relid);
    if (name == nullptr)
        return psprintf("%u", relid);
    return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), name);
}

static const char* name_of_tag(const LOCKTAG& tag) {
    Oid table = table_of(tag);
    if (tag.locktag_type == LOCKTAG_TUPLE && OidIsValid(table))
        return psprintf("%s (%u,%u)", name_of_table(table), tag.locktag_field3, tag.locktag_field4);
    if (OidIsValid(table))
        return name_of_table(table);
    if (tag.locktag_type == LOCKTAG_TRANSACTION)
        return psprintf("%u", tag.locktag_field1);
    StringInfoData name;
    initStringInfo(&name);
    DescribeLockTag(&name, &tag);
    return name.data;
}

static const char* kind_of_tag(const LOCKTAG& tag) {
    constexpr const char* spaces[key_lock::kKeySpaces] = {"key_lock", "applock",
                                                          "idempotency_claim", "applock"};
    if (key_lock::is_key_tag(tag))
        return spaces[static_cast<int>(key_lock::space_of(tag))];
    return tag.locktag_type == LOCKTAG_TUPLE ? "row" : LockTagTypeNames[tag.locktag_type];
}

static void name_wait(Report* report, Wait* wait, const LockInstanceData& lock) {
    LOCKTAG tag = lock.locktag;
    if (tag.locktag_type == LOCKTAG_TRANSACTION) {
        auto* row = static_cast<RowOf*>(hash_search(report->rows, &lock.pid, HASH_FIND, nullptr));
        if (row != nullptr)
            tag = row->tag;
    }
    wait->rel = version::table_of_turn(tag);
    if (OidIsValid(wait->rel)) {
        wait->kind = "row";
        wait->name = name_of_table(wait->rel);
        return;
    }
    wait->kind = kind_of_tag(tag);
    wait->name =
        key_lock::is_key_tag(tag) ? key_lock::shown_name(&report->names, lock) : name_of_tag(tag);
    wait->rel = table_of(tag);
}

// --- Who is in the way ---------------------------------------------------------------------------

static Blocker blocker_of(const Report& report, const LockInstanceData& lock) {
    Blocker blocker;
    blocker.pid = lock.pid;
    if (lock.pid != 0)
        return blocker;
    blocker.prepared = prepared_transaction(report.locks, lock);
    blocker.what = "prepared transaction";
    return blocker;
}

// Of one process, or of a group of parallel workers, which do not wait for each other.
static bool is_own(const LockInstanceData& lock, const LockInstanceData& waiter) {
    return lock.pid != 0 && (lock.pid == waiter.pid || lock.leaderPid == waiter.leaderPid);
}

static void add_holders(const Report& report, Wait* wait, const AwaitedLock& lock,
                        const LockInstanceData& waiter, LOCKMASK excluded) {
    ListCell* cell;
    foreach (cell, lock.holders) {
        auto* holder = static_cast<const LockInstanceData*>(lfirst(cell));
        if ((holder->holdMask & excluded) != 0 && !is_own(*holder, waiter) &&
            !wait->add(blocker_of(report, *holder)))
            return;
    }
}

// The nearest one that has waited for longer.
static void add_waiter_before(const Report& report, Wait* wait, const AwaitedLock& lock, int place,
                              LOCKMASK excluded) {
    auto* waiter = static_cast<const LockInstanceData*>(list_nth(lock.waiters, place));
    while (--place >= 0) {
        auto* before = static_cast<const LockInstanceData*>(list_nth(lock.waiters, place));
        if ((LOCKBIT_ON(before->waitLockMode) & excluded) == 0 || is_own(*before, *waiter))
            continue;
        wait->add(blocker_of(report, *before));
        return;
    }
}

static void report_waiter(Report* report, const AwaitedLock& lock, int place) {
    auto* waiter = static_cast<const LockInstanceData*>(list_nth(lock.waiters, place));
    LOCKMASK excluded = GetLockTagsMethodTable(&lock.tag)->conflictTab[waiter->waitLockMode];
    Wait wait;
    wait.pid = waiter->pid;
    wait.since = waiter->waitStart;
    name_wait(report, &wait, *waiter);
    add_holders(*report, &wait, lock, *waiter, excluded);
    if (wait.blocker_count == 0)
        add_waiter_before(*report, &wait, lock, place, excluded);
    report_wait(report->waits, wait);
}

void report_server_waits(List** waits) {
    Report report = {waits,
                     lock_status(),
                     make_table("interlock awaited locks", sizeof(LOCKTAG), sizeof(AwaitedLock)),
                     make_table("interlock locked rows", sizeof(int), sizeof(RowOf)),
                     {}};
    find_waiters(&report);
    find_holders(&report);
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, report.awaited);
    while (auto* entry = static_cast<AwaitedLock*>(hash_seq_search(&scan)))
        for (int i = 0; i < list_length(entry->waiters); i++)
            report_waiter(&report, *entry, i);
}

} // namespace interlock::overview
