#include "escrow/memory.h"

#include "server/shared_memory.h"
#include "server/usage_report.h"

namespace interlock::escrow {

struct EscrowKey {
    Oid database;
    uint32 unused; // zero: keys are compared as bytes
    int64 counter;
};

struct EscrowEntry {
    EscrowKey key;
    slock_t lock;
    int32 pins;
    uint64 epoch; // 0: it was dropped while it was pinned
    Oid trigger;  // that the epoch is of
    Range range;
    Effects open; // of all pins together
    FoldTimes times;
    TimestampTz decided_at; // the last end of a transaction that has changed it
};

namespace {

enum class NoteState : uint8 { kFree, kReserved, kKept, kForgotten };

// What the end of a prepared transaction does to an entry. Nothing keeps a note from growing older
// than a number of 32 bits can tell.
struct Note {
    NoteState state;
    FullTransactionId xid;
    EscrowEntry* entry;
    Effects effects;
};

// The lock is shared for the use of entries, and exclusive to enter and remove them and for notes.
struct Header {
    LWLock* lock;
    int notes_used; // beyond it all are free
    int first_free; // before it none is
    Note notes[FLEXIBLE_ARRAY_MEMBER];
};

} // namespace

constexpr const char* kTranche = "pg_interlock_escrow";

static int max_counters = 8192;
static Header* header = nullptr;
static HTAB* entries = nullptr;

static int max_notes() { return max_counters * 2; }
static Size header_size() {
    return add_size(offsetof(Header, notes), mul_size(sizeof(Note), max_notes()));
}

static void request_memory() {
    RequestAddinShmemSpace(
        add_size(header_size(), hash_estimate_size(max_counters, sizeof(EscrowEntry))));
    RequestNamedLWLockTranche(kTranche, 1);
}

static void attach_memory() {
    bool found;
    header =
        static_cast<Header*>(ShmemInitStruct("pg_interlock escrow notes", header_size(), &found));
    if (!found) {
        memset(header, 0, header_size());
        header->lock = &GetNamedLWLockTranche(kTranche)->lock;
    }
    HASHCTL control = {};
    control.keysize = sizeof(EscrowKey);
    control.entrysize = sizeof(EscrowEntry);
    entries = shared_hash("pg_interlock escrow entries", max_counters, &control,
                          HASH_ELEM | HASH_BLOBS | HASH_FIXED_SIZE);
}

static EscrowKey key_of(int64 counter) { return {MyDatabaseId, 0, counter}; }

static EscrowEntry* find_entry(int64 counter) {
    EscrowKey key = key_of(counter);
    return static_cast<EscrowEntry*>(hash_search(entries, &key, HASH_FIND, nullptr));
}

// Under the spinlock.
static void pin(EscrowEntry* entry, const Effects& effects, TimestampTz now) {
    entry->pins++;
    entry->open.add(effects);
    if (entry->times.changed_at == 0)
        entry->times.changed_at = now;
}

static void apply(EscrowEntry* entry, const Effects& effects, bool committed) {
    TimestampTz now = GetCurrentTimestamp();
    SpinLockAcquire(&entry->lock);
    entry->decided_at = now;
    entry->range.inf += committed ? effects.inf_on_commit : effects.inf_on_abort;
    entry->range.sup -= committed ? effects.sup_on_commit : effects.sup_on_abort;
    entry->open.remove(effects);
    entry->pins--;
    SpinLockRelease(&entry->lock);
}

// Under the exclusive lock no pin is added, but the end of a transaction removes its own under the
// spinlock alone: it must have released it before the entry is used for something else.
static bool is_pinned(EscrowEntry* entry) {
    SpinLockAcquire(&entry->lock);
    bool pinned = entry->pins > 0;
    SpinLockRelease(&entry->lock);
    return pinned;
}

// Not free any more.
static Note* free_place() {
    int place = header->first_free;
    while (place < header->notes_used && header->notes[place].state != NoteState::kFree)
        place++;
    header->first_free = place;
    if (place == max_notes())
        return nullptr;
    header->first_free++;
    header->notes_used = Max(header->notes_used, place + 1);
    return &header->notes[place];
}

static void free_place_of(Note* note) {
    note->state = NoteState::kFree;
    header->first_free = Min(header->first_free, static_cast<int>(note - header->notes));
}

static int count_free_notes() {
    int count = max_notes() - header->notes_used;
    for (int i = 0; i < header->notes_used; i++)
        count += header->notes[i].state == NoteState::kFree ? 1 : 0;
    return count;
}

// Of a transaction that is not after the next one.
static FullTransactionId full_xid(TransactionId xid) {
    FullTransactionId next = ReadNextFullTransactionId();
    uint32 epoch = EpochFromFullTransactionId(next);
    bool is_before = xid > XidFromFullTransactionId(next);
    return FullTransactionIdFromEpochAndXid(is_before ? epoch - 1 : epoch, xid);
}

// Whether its commit log is gone: it has ended. Under XactTruncationLock, or vacuum may truncate
// the log meanwhile.
static bool is_forgotten(FullTransactionId xid) {
    constexpr uint64 kTellable = UINT64CONST(1) << 31;
    uint64 next = U64FromFullTransactionId(ReadNextFullTransactionId());
    return next - U64FromFullTransactionId(xid) >= kTellable ||
           TransactionIdPrecedes(XidFromFullTransactionId(xid), oldest_in_commit_log());
}

namespace {

enum class Fate : uint8 { kRunning, kCommitted, kAborted, kForgotten };

} // namespace

// In progress is asked before committed: a transaction has its commit record before it is visible.
static Fate fate_of(FullTransactionId full) {
    TransactionId xid = XidFromFullTransactionId(full);
    if (is_forgotten(full))
        return Fate::kForgotten;
    if (TransactionIdIsInProgress(xid))
        return Fate::kRunning;
    return TransactionIdDidCommit(xid) ? Fate::kCommitted : Fate::kAborted;
}

static void settle(Note* note, Fate fate) {
    if (fate == Fate::kForgotten) {
        note->state = NoteState::kForgotten;
    } else if (fate != Fate::kRunning) {
        apply(note->entry, note->effects, fate == Fate::kCommitted);
        free_place_of(note);
    }
}

static bool is_forgotten_note_of(const Note& note, const EscrowEntry* entry) {
    return note.state == NoteState::kForgotten && note.entry == entry;
}

// Whether nothing but such notes pins it.
static bool has_only_forgotten_notes(EscrowEntry* entry) {
    int count = 0;
    for (int i = 0; i < header->notes_used; i++)
        count += is_forgotten_note_of(header->notes[i], entry) ? 1 : 0;
    SpinLockAcquire(&entry->lock);
    bool only = entry->pins == count;
    SpinLockRelease(&entry->lock);
    return only;
}

// Nobody can say how they ended, so the entry stays too careful. Once it can go, it goes: a load
// reads in the journal what became of them.
static void drop_forgotten() {
    for (int i = 0; i < header->notes_used; i++) {
        EscrowEntry* entry = header->notes[i].entry;
        if (header->notes[i].state != NoteState::kForgotten || !has_only_forgotten_notes(entry))
            continue;
        for (int j = i; j < header->notes_used; j++)
            if (is_forgotten_note_of(header->notes[j], entry))
                free_place_of(&header->notes[j]);
        hash_search(entries, &entry->key, HASH_REMOVE, nullptr);
    }
}

// A transaction may have thousands of notes, one behind the other, and others wait for the lock.
static void settle_with_lock() {
    if (header->notes_used == 0)
        return;
    FullTransactionId last = InvalidFullTransactionId;
    Fate fate = Fate::kRunning;
    LWLockAcquire(XactTruncationLock, LW_SHARED);
    for (int i = 0; i < header->notes_used; i++) {
        Note* note = &header->notes[i];
        if (note->state != NoteState::kKept)
            continue;
        if (!FullTransactionIdEquals(note->xid, last))
            fate = fate_of(note->xid);
        last = note->xid;
        settle(note, fate);
    }
    LWLockRelease(XactTruncationLock);
    drop_forgotten();
    while (header->notes_used > 0 &&
           header->notes[header->notes_used - 1].state == NoteState::kFree)
        header->notes_used--;
}

// Entries without pins can be loaded again.
static bool make_room() {
    if (hash_get_num_entries(entries) < max_counters)
        return true;
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, entries);
    EscrowEntry* entry;
    while ((entry = static_cast<EscrowEntry*>(hash_seq_search(&scan))) != nullptr) {
        if (is_pinned(entry))
            continue;
        hash_seq_term(&scan);
        hash_search(entries, &entry->key, HASH_REMOVE, nullptr);
        return true;
    }
    return false;
}

static Verdict grant(EscrowEntry* entry, const Delta& delta, EscrowLimits limits,
                     CounterState* after) {
    TimestampTz now = GetCurrentStatementStartTimestamp();
    SpinLockAcquire(&entry->lock);
    Verdict verdict = test_delta(entry->range, delta.amount, limits);
    if (verdict == Verdict::kGranted) {
        (delta.amount < 0 ? entry->range.inf : entry->range.sup) += delta.amount;
        pin(entry, effects_of(delta), now);
    }
    *after = {entry->range, entry->open};
    SpinLockRelease(&entry->lock);
    return verdict;
}

bool has_escrow_memory() { return header != nullptr; }

Verdict grant_in_memory(int64 counter, uint64 epoch, const Delta& delta, EscrowLimits limits,
                        EscrowEntry** entry, CounterState* after) {
    Verdict verdict = Verdict::kNoEntry;
    for (bool settled = false;; settled = true) {
        LWLockAcquire(header->lock, LW_SHARED);
        *entry = find_entry(counter);
        verdict = *entry != nullptr && (*entry)->epoch == epoch
                      ? grant(*entry, delta, limits, after)
                      : Verdict::kNoEntry;
        LWLockRelease(header->lock);
        if (settled || verdict == Verdict::kGranted || verdict == Verdict::kNoEntry)
            return verdict;
        settle_notes();
    }
}

bool has_entry(int64 counter, uint64 epoch) {
    LWLockAcquire(header->lock, LW_SHARED);
    EscrowEntry* entry = find_entry(counter);
    bool found = entry != nullptr && entry->epoch == epoch;
    LWLockRelease(header->lock);
    return found;
}

bool pin_entry(int64 counter, uint64 epoch, const Delta& delta, EscrowEntry** entry) {
    LWLockAcquire(header->lock, LW_SHARED);
    *entry = find_entry(counter);
    bool found = *entry != nullptr && (*entry)->epoch == epoch;
    if (found) {
        TimestampTz now = GetCurrentStatementStartTimestamp();
        SpinLockAcquire(&(*entry)->lock);
        pin(*entry, effects_of(delta), now);
        SpinLockRelease(&(*entry)->lock);
    }
    LWLockRelease(header->lock);
    return found;
}

void end_pin(EscrowEntry* entry, const Effects& effects, bool committed) {
    apply(entry, effects, committed);
}

static int compare_in_doubt(const void* left, const void* right) {
    TransactionId a = static_cast<const InDoubt*>(left)->xid;
    TransactionId b = static_cast<const InDoubt*>(right)->xid;
    return a < b ? -1 : a > b ? 1 : 0;
}

// One for each transaction, however many parts it has.
static int merge_in_doubt(InDoubt* in_doubt, int count) {
    int merged = 0;
    if (count > 1)
        qsort(in_doubt, count, sizeof(InDoubt), compare_in_doubt);
    for (int i = 0; i < count; i++)
        if (merged > 0 && in_doubt[merged - 1].xid == in_doubt[i].xid)
            in_doubt[merged - 1].effects.add(in_doubt[i].effects);
        else
            in_doubt[merged++] = in_doubt[i];
    return merged;
}

bool enter_counter(int64 counter, uint64 epoch, Oid trigger, Range range, InDoubt* in_doubt,
                   int count) {
    count = merge_in_doubt(in_doubt, count);
    TimestampTz now = GetCurrentTimestamp();
    LWLockAcquire(header->lock, LW_EXCLUSIVE);
    settle_with_lock();
    EscrowEntry* entry = find_entry(counter);
    bool fits = entry != nullptr ? !is_pinned(entry) && entry->epoch != epoch : make_room();
    if (fits && count_free_notes() >= count) {
        EscrowKey key = key_of(counter);
        bool found;
        entry = static_cast<EscrowEntry*>(hash_search(entries, &key, HASH_ENTER_NULL, &found));
        fits = entry != nullptr;
        if (fits && !found)
            SpinLockInit(&entry->lock);
        if (fits) {
            entry->pins = count;
            entry->epoch = epoch;
            entry->trigger = trigger;
            entry->range = range;
            entry->open = {};
            for (int i = 0; i < count; i++)
                entry->open.add(in_doubt[i].effects);
            entry->times = {0, now}; // the parts may be older
            entry->decided_at = now;
        }
        for (int i = 0; fits && i < count; i++)
            *free_place() = {NoteState::kKept, full_xid(in_doubt[i].xid), entry,
                             in_doubt[i].effects};
    } else {
        // Another session may have entered it meanwhile.
        fits = entry != nullptr && entry->epoch == epoch;
    }
    LWLockRelease(header->lock);
    return fits;
}

void drop_entry(int64 counter) {
    if (header == nullptr)
        return;
    LWLockAcquire(header->lock, LW_EXCLUSIVE);
    settle_with_lock();
    EscrowEntry* entry = find_entry(counter);
    if (entry != nullptr && !is_pinned(entry))
        hash_search(entries, &entry->key, HASH_REMOVE, nullptr);
    else if (entry != nullptr) // of this transaction
        entry->epoch = 0;
    LWLockRelease(header->lock);
}

// What ended after its begin, or is undecided, the fold need not have seen.
void note_fold(int64 counter, TimestampTz began) {
    if (header == nullptr)
        return;
    TimestampTz now = GetCurrentTimestamp();
    LWLockAcquire(header->lock, LW_SHARED);
    EscrowEntry* entry = find_entry(counter);
    if (entry != nullptr) {
        SpinLockAcquire(&entry->lock);
        bool saw_all = entry->pins == 0 && entry->decided_at < began;
        entry->times = {now, saw_all ? 0 : began};
        SpinLockRelease(&entry->lock);
    }
    LWLockRelease(header->lock);
}

bool read_entry(int64 counter, EntryState* state) {
    if (header == nullptr)
        return false;
    LWLockAcquire(header->lock, LW_SHARED);
    EscrowEntry* entry = find_entry(counter);
    bool found = entry != nullptr;
    if (found) {
        SpinLockAcquire(&entry->lock);
        *state = {entry->epoch, entry->trigger, entry->range, entry->times, entry->pins == 0};
        SpinLockRelease(&entry->lock);
    }
    LWLockRelease(header->lock);
    return found;
}

// Notes without pins of their own: the list's item has one until it is handed over.
bool reserve_note(EscrowEntry* entry, const Effects& effects, int* note) {
    FullTransactionId xid = GetTopFullTransactionId();
    LWLockAcquire(header->lock, LW_EXCLUSIVE);
    Note* place = free_place();
    if (place != nullptr) {
        *place = {NoteState::kReserved, xid, entry, effects};
        *note = static_cast<int>(place - header->notes);
    }
    LWLockRelease(header->lock);
    return place != nullptr;
}

void keep_note(int note) {
    LWLockAcquire(header->lock, LW_EXCLUSIVE);
    header->notes[note].state = NoteState::kKept;
    LWLockRelease(header->lock);
}

void free_note(int note) {
    LWLockAcquire(header->lock, LW_EXCLUSIVE);
    free_place_of(&header->notes[note]);
    LWLockRelease(header->lock);
}

void settle_notes() {
    if (header == nullptr || header->notes_used == 0)
        return;
    LWLockAcquire(header->lock, LW_EXCLUSIVE);
    settle_with_lock();
    LWLockRelease(header->lock);
}

void drop_entries_of(Oid database) {
    if (header == nullptr)
        return;
    LWLockAcquire(header->lock, LW_EXCLUSIVE);
    settle_with_lock();
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, entries);
    while (auto* entry = static_cast<EscrowEntry*>(hash_seq_search(&scan)))
        if (entry->key.database == database && !is_pinned(entry))
            hash_search(entries, &entry->key, HASH_REMOVE, nullptr);
    LWLockRelease(header->lock);
}

void preload_escrow() {
    DefineCustomIntVariable(
        "interlock.max_escrow_counters",
        "Counters that can be changed at once without the lock of their row.",
        "Others are loaded instead of counters that no transaction is changing.", &max_counters,
        8192, 16, 1 << 20, PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
    add_shared_area({request_memory, attach_memory});
    watch_dropped_databases();
}

void report_escrow_usage(UsageReport* report) {
    if (header != nullptr)
        report_total(report, "escrow counters", hash_get_num_entries(entries), max_counters);
}

} // namespace interlock::escrow
