// What must be known of leases after a crash, in the pages of the table
// interlock_internal.lease_store.
//
// The table has rows like any other, but they are written in place, as the server writes a
// sequence: outside of the caller's transaction, with a generic WAL record of its own, frozen, so
// that they need no vacuum. Standbys replay it. The first page has the state
// (docs/internals/leases.md), the others have records of long leases.
//
// Written by any role that uses leases, also in a read-only transaction.
#pragma once

#include "lease/token.h"

namespace interlock::lease {

// A start of the operating system. Monotonic times of two boots have nothing to do with each other.
struct Boot {
    char id[37]; // empty: not known, and so the same as no other
};
Boot this_boot();
bool is_same_boot(const Boot& left, const Boot& right);

// By a hash of the key, and by one of the role and the key.
constexpr int kKeyFloors = 640;
constexpr int kRoleFloors = 256;
constexpr int kFloors = kKeyFloors + kRoleFloors;

struct LeaseState {
    uint32 magic;
    Oid database; // another one in a copy by CREATE DATABASE
    TimeLineID timeline;
    uint64 run;
    int64 token_high; // no token at or above it was given out
    int64 epoch;      // tokens below it cannot be reclaimed
    uint64 epoch_run; // the run that has begun it
    int64 horizon;    // on the clock of `boot`: no short lease expires after it
    int64 span;       // how far the horizon can be ahead of the clock
    Boot boot;
    SipKey secret; // of tokens; written once
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

// The current database's store, opened. Raises 55000 when it is not there.
Relation open_store();
void close_store(Relation store);

// Runs body(LeaseState*) under the page's lock and writes what it leaves there. A new page is
// zero. The result is to be given to flush_store before anybody relies on it.
template <typename Body>
XLogRecPtr change_state(Relation store, Body&& body);

// Writes a record over the one of the same token on the page of `place`, else into a free one,
// which is looked for from that page on. `place` is then where it is.
XLogRecPtr write_long_lease(Relation store, const LongLease& lease, StorePlace* place);

// Frees the record if it has that token. The result is behind the last change of its page.
XLogRecPtr clear_long_lease(Relation store, StorePlace place, int64 token);

// Runs body(LongLease*, StorePlace) for each record that is not free, and writes what it leaves
// there.
template <typename Body>
XLogRecPtr change_long_leases(Relation store, Body&& body);

// Returns when it survives a crash, and a failover to the synchronous standbys: others rely on it
// too, so synchronous_commit of this session makes no difference. Raises 57014 when the wait for
// them is canceled.
void flush_store(XLogRecPtr record);
bool try_flush_store(XLogRecPtr record); // false instead
[[noreturn]] void raise_not_on_standbys();

// One page, locked, and the copy of it that is to be changed.
struct StorePage {
    Buffer buffer;
    GenericXLogState* record;
    Page page;
};
StorePage open_page(Relation store, BlockNumber block); // made if it is not there
XLogRecPtr write_page(const StorePage& page);
void leave_page(const StorePage& page);

// A record of the page: at an address that need not be aligned.
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
