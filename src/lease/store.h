// What leases need after a crash, in the pages of table interlock_internal.lease_store.
//
// The table has ordinary rows, but they are written in place, as the server writes a sequence. They
// are written outside of the caller's transaction, with a separate generic WAL record, and frozen,
// so that they need no vacuum. Standbys replay it. The first page has the state
// (docs/internals/leases.md). The other pages have records of long leases.
//
// Any role that uses leases writes it, also in a read-only transaction.
#pragma once

#include "lease/token.h"

namespace interlock::lease {

// A start of the operating system. Monotonic times of two boots cannot be compared.
struct Boot {
    char id[37]; // empty: not known, and so different from all others
};
Boot this_boot();
bool is_same_boot(const Boot& left, const Boot& right);

// For a hash of the key, and for a hash of the role and the key.
constexpr int kKeyFloors = 640;
constexpr int kRoleFloors = 256;
constexpr int kFloors = kKeyFloors + kRoleFloors;

struct LeaseState {
    uint32 magic;
    Oid database; // a different OID in a copy by CREATE DATABASE
    TimeLineID timeline;
    uint64 run;
    int64 token_high; // no token at or above it was granted
    int64 epoch;      // tokens below it cannot be reclaimed
    uint64 epoch_run; // the run in which the epoch began
    int64 horizon;    // on the clock of `boot`: no short lease expires after it
    int64 span;       // how far the horizon can be ahead of the clock
    Boot boot;
    SipKey secret; // for tokens; written once
    int64 floors[kFloors];
};

struct LongLease {
    uint32 magic;
    uint16 key_length;
    uint8 holder_length;
    LeaseStay stay;
    LeaseInfo lease; // expires on the clock of `boot`; token 0: the record is free
    TimestampTz shown_expires;
    Boot boot;
    char key[kMaxLeaseKeyBytes];
    char holder[kMaxHolderBytes];
    uint32 release_gives;

    LeaseText text() const { return {holder, holder_length, stay, release_gives}; }
};

// Opens the current database's store. Raises 55000 if it does not exist.
Relation open_store();
void close_store(Relation store);

// Runs body(LeaseState*) under the page's lock, and writes the changed state. A new page is zero.
// Pass the result to flush_store() before any session relies on the change.
template <typename Body>
XLogRecPtr change_state(Relation store, Body&& body);

// Writes a record. It replaces the record with the same token on the page of `place`. If there is
// none, it takes a free record, searched from that page on, and sets `place`.
XLogRecPtr write_long_lease(Relation store, const LongLease& lease, StorePlace* place);

// Frees the record if it has that token. The result is after the last change of its page.
XLogRecPtr clear_long_lease(Relation store, StorePlace place, int64 token);

// Runs body(LongLease*, StorePlace) for each record that is not free, and writes the changed
// record.
template <typename Body>
XLogRecPtr change_long_leases(Relation store, Body&& body);

// Returns when the change survives a crash and a failover to the synchronous standbys. Other
// sessions rely on it too, so this session's synchronous_commit does not matter. Raises 57014 if
// the wait for the standbys is canceled.
void flush_store(XLogRecPtr record);
bool try_flush_store(XLogRecPtr record); // returns false instead
[[noreturn]] void raise_not_on_standbys();

// A locked page, and its copy, which will be changed.
struct StorePage {
    Buffer buffer;
    GenericXLogState* record;
    Page page;
};
StorePage open_page(Relation store, BlockNumber block); // creates the page if needed
XLogRecPtr write_page(const StorePage& page);
void leave_page(const StorePage& page);

// The records of the page. A record may be at an unaligned address.
int count_records(const StorePage& page);
char* record_at(const StorePage& page, int offset, size_t size);

template <typename T>
T read_record(const StorePage& page, int offset) {
    T value;
    memcpy(&value, record_at(page, offset, sizeof(T)), sizeof(T));
    return value;
}

template <typename T>
void write_record(const StorePage& page, int offset, const T& value) {
    memcpy(record_at(page, offset, sizeof(T)), &value, sizeof(T));
}

template <typename Body>
XLogRecPtr change_state(Relation store, Body&& body) {
    StorePage page = open_page(store, 0);
    auto state = read_record<LeaseState>(page, FirstOffsetNumber);
    body(&state);
    write_record(page, FirstOffsetNumber, state);
    return write_page(page);
}

template <typename Body>
XLogRecPtr change_long_leases(Relation store, Body&& body) {
    XLogRecPtr last = InvalidXLogRecPtr;
    for (BlockNumber block = 1; block < RelationGetNumberOfBlocks(store); block++) {
        CHECK_FOR_INTERRUPTS();
        StorePage page = open_page(store, block);
        for (int i = FirstOffsetNumber; i <= count_records(page); i++) {
            auto lease = read_record<LongLease>(page, i);
            if (lease.lease.token == 0)
                continue;
            body(&lease, StorePlace{block, static_cast<OffsetNumber>(i)});
            write_record(page, i, lease);
        }
        last = write_page(page);
    }
    return last;
}

} // namespace interlock::lease
