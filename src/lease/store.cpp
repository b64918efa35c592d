#include "lease/store.h"

#include "server/scope.h"
#include "table/own_table.h"

namespace interlock::lease {

extern "C" {
PG_FUNCTION_INFO_V1(lease_store_trigger);
}

constexpr const char* kStore = "lease_store";
constexpr uint32 kStateMagic = 0x494c5334;
constexpr uint32 kLongLeaseMagic = 0x494c4c32;

// A full store grows by one part of so many: each page that is made costs one look at this number
// of pages for a free record, however large the store is.
constexpr BlockNumber kGrowth = 16;

// A place of nothing but zeros and the magic number, as a row of the store.
template <typename T>
static HeapTuple empty_row(Relation store, uint32 magic, ItemPointerData self) {
    auto* content = static_cast<bytea*>(palloc0(VARHDRSZ + sizeof(T)));
    SET_VARSIZE(content, VARHDRSZ + sizeof(T));
    memcpy(VARDATA(content), &magic, sizeof(magic));
    Datum value = PointerGetDatum(content);
    bool null = false;
    HeapTuple tuple = heap_form_tuple(RelationGetDescr(store), &value, &null);
    tuple->t_data->t_infomask &= ~HEAP_XACT_MASK; // it was formed as a datum
    tuple->t_data->t_infomask2 &= ~HEAP2_XACT_MASK;
    HeapTupleHeaderSetXmin(tuple->t_data, FrozenTransactionId);
    HeapTupleHeaderSetXminFrozen(tuple->t_data);
    HeapTupleHeaderSetCmin(tuple->t_data, FirstCommandId);
    HeapTupleHeaderSetXmax(tuple->t_data, InvalidTransactionId);
    tuple->t_data->t_infomask |= HEAP_XMAX_INVALID;
    tuple->t_data->t_ctid = self;
    return tuple;
}

template <typename T>
static void fill_page(Relation store, Page page, BlockNumber block, uint32 magic, int rows) {
    for (int i = 1; i <= rows; i++) {
        ItemPointerData self;
        ItemPointerSet(&self, block, static_cast<OffsetNumber>(i));
        HeapTuple row = empty_row<T>(store, magic, self);
        if (PageAddItem(page, reinterpret_cast<char*>(row->t_data), row->t_len, InvalidOffsetNumber,
                        false, true) == InvalidOffsetNumber)
            elog(ERROR, "lease store: row does not fit the page");
        heap_freetuple(row);
    }
}

static void initialize_page(Relation store, Page page, BlockNumber block) {
    constexpr int kRows = 5;
    static_assert(
        kRows * (sizeof(LongLease) + 64) < BLCKSZ - 64 && sizeof(LeaseState) + 64 < BLCKSZ - 64,
        "pg_interlock needs a server with blocks of 8 kB or more");
    PageInit(page, BLCKSZ, 0);
    if (block == 0)
        fill_page<LeaseState>(store, page, block, kStateMagic, 1);
    else
        fill_page<LongLease>(store, page, block, kLongLeaseMagic, kRows);
}

// The last block, made.
static void extend_store(Relation store) {
    Buffer buffer = ReadBufferExtended(store, MAIN_FORKNUM, P_NEW, RBM_ZERO_AND_LOCK, nullptr);
    BlockNumber block = BufferGetBlockNumber(buffer);
    GenericXLogState* record = GenericXLogStart(store);
    Page page = GenericXLogRegisterBuffer(record, buffer, GENERIC_XLOG_FULL_IMAGE);
    initialize_page(store, page, block);
    GenericXLogFinish(record);
    UnlockReleaseBuffer(buffer);
}

static void need_block(Relation store, BlockNumber block) {
    if (RelationGetNumberOfBlocks(store) > block)
        return;
    LockRelationForExtension(store, ExclusiveLock);
    while (RelationGetNumberOfBlocks(store) <= block)
        extend_store(store);
    UnlockRelationForExtension(store, ExclusiveLock);
}

static bool is_free(const LongLease& record) {
    return record.lease.token == 0 || record.lease.expires <= monotonic_now();
}

// The record of that token, else a free one; 0: neither is on the page.
static int record_for(const StorePage& page, int64 token) {
    int free = 0;
    for (int i = count_records(page); i >= FirstOffsetNumber; i--) {
        auto there = read_record<LongLease>(page, i);
        if (there.lease.token == token)
            return i;
        if (is_free(there))
            free = i;
    }
    return free;
}

static bool write_into_page(Relation store, BlockNumber block, const LongLease& lease,
                            StorePlace* place, XLogRecPtr* record) {
    StorePage page = open_page(store, block);
    int i = record_for(page, lease.lease.token);
    if (i == 0) {
        leave_page(page);
        return false;
    }
    auto there = read_record<LongLease>(page, i);
    LongLease merged = lease;
    bool is_same = there.lease.token == lease.lease.token;
    if (is_same && there.stay == LeaseStay::kReleased) {
        merged = there; // since the copy of the lease that is to be written was made
    } else if (is_same && lease.stay != LeaseStay::kReleased &&
               there.lease.expires > lease.lease.expires) { // of another renewal
        merged.lease.expires = there.lease.expires;
        merged.lease.span = Max(there.lease.span, lease.lease.span);
        merged.shown_expires = there.shown_expires;
        merged.release_gives = there.release_gives;
    }
    write_record(page, i, merged);
    *place = {block, static_cast<OffsetNumber>(i)};
    *record = write_page(page);
    return true;
}

// The wait for synchronous standbys ends with a warning when it is canceled.
static bool is_on_standbys(XLogRecPtr record) {
    LWLockAcquire(SyncRepLock, LW_SHARED);
    bool confirmed = !has_synchronous_standbys() || record <= WalSndCtl->lsn[SYNC_REP_WAIT_FLUSH];
    LWLockRelease(SyncRepLock);
    return confirmed;
}

// --- Boots ---------------------------------------------------------------------------------------

Boot this_boot() {
    static Boot boot = {};
    if (boot.id[0] != '\0')
        return boot;
    int file = OpenTransientFile("/proc/sys/kernel/random/boot_id", O_RDONLY);
    if (file < 0)
        return boot;
    if (read(file, boot.id, sizeof(boot.id) - 1) != sizeof(boot.id) - 1)
        boot.id[0] = '\0';
    CloseTransientFile(file);
    return boot;
}

bool is_same_boot(const Boot& left, const Boot& right) {
    return left.id[0] != '\0' && strncmp(left.id, right.id, sizeof(left.id)) == 0;
}

// --- Pages ---------------------------------------------------------------------------------------

Relation open_store() {
    Oid schema = internal_schema();
    Oid store = OidIsValid(schema) ? get_relname_relid(kStore, schema) : InvalidOid;
    if (!OidIsValid(store))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("table %s.%s does not exist", kInternalSchema, kStore),
                        errhint("Drop and create the extension pg_interlock.")));
    return table_open(store, RowExclusiveLock);
}

void close_store(Relation store) { table_close(store, RowExclusiveLock); }

StorePage open_page(Relation store, BlockNumber block) {
    need_block(store, block);
    StorePage page;
    page.buffer = ReadBuffer(store, block);
    LockBuffer(page.buffer, BUFFER_LOCK_EXCLUSIVE);
    page.record = GenericXLogStart(store);
    page.page = GenericXLogRegisterBuffer(page.record, page.buffer, 0);
    if (PageIsNew(page.page)) // a crash came before its first record
        initialize_page(store, page.page, block);
    return page;
}

XLogRecPtr write_page(const StorePage& page) {
    XLogRecPtr record = GenericXLogFinish(page.record);
    UnlockReleaseBuffer(page.buffer);
    return record;
}

void leave_page(const StorePage& page) {
    GenericXLogAbort(page.record);
    UnlockReleaseBuffer(page.buffer);
}

int count_records(const StorePage& page) {
    return static_cast<int>(PageGetMaxOffsetNumber(page.page));
}

char* record_at(const StorePage& page, int offset, size_t size) {
    uint32 magic = size == sizeof(LeaseState) ? kStateMagic : kLongLeaseMagic;
    ItemId item = PageGetItemId(page.page, static_cast<OffsetNumber>(offset));
    char* content = nullptr;
    if (ItemIdIsNormal(item) && ItemIdGetLength(item) >= size + VARHDRSZ) {
        auto* row = reinterpret_cast<HeapTupleHeader>(PageGetItem(page.page, item));
        content = reinterpret_cast<char*>(row) + row->t_hoff + VARHDRSZ;
    }
    if (content == nullptr || memcmp(content, &magic, sizeof(magic)) != 0)
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                        errmsg("table %s.%s was changed by hand", kInternalSchema, kStore),
                        errhint("Drop and create the extension pg_interlock.")));
    return content;
}

// --- Long leases ---------------------------------------------------------------------------------

XLogRecPtr write_long_lease(Relation store, const LongLease& lease, StorePlace* place) {
    LongLease marked = lease;
    marked.magic = kLongLeaseMagic;
    XLogRecPtr record = InvalidXLogRecPtr;
    BlockNumber blocks = Max(RelationGetNumberOfBlocks(store), BlockNumber{1});
    BlockNumber first = place->block < blocks ? Max(place->block, BlockNumber{1}) : 1;
    for (BlockNumber i = 0; i + 1 < blocks; i++) {
        CHECK_FOR_INTERRUPTS();
        BlockNumber block = 1 + (first - 1 + i) % (blocks - 1);
        if (write_into_page(store, block, marked, place, &record))
            return record;
    }
    need_block(store, blocks + blocks / kGrowth);
    while (!write_into_page(store, blocks, marked, place, &record))
        blocks++;
    return record;
}

XLogRecPtr clear_long_lease(Relation store, StorePlace place, int64 token) {
    StorePage page = open_page(store, place.block);
    if (place.offset > count_records(page) ||
        read_record<LongLease>(page, place.offset).lease.token != token) {
        // The session that cleared it may not be done: wait for that too, but with a record of our
        // own, as no two may wait for the same place in the WAL.
        return write_page(page);
    }
    LongLease nothing = {};
    nothing.magic = kLongLeaseMagic;
    write_record(page, place.offset, nothing);
    return write_page(page);
}

bool try_flush_store(XLogRecPtr record) {
    if (record == InvalidXLogRecPtr)
        return true;
    XLogFlush(record);
    if (max_wal_senders == 0 || SyncRepStandbyNames == nullptr || SyncRepStandbyNames[0] == '\0')
        return true;
    with_settings([record] {
        if (synchronous_commit < SYNCHRONOUS_COMMIT_REMOTE_FLUSH)
            (void)set_config_option("synchronous_commit", "on", PGC_USERSET, PGC_S_SESSION,
                                    GUC_ACTION_SAVE, true, 0, false);
        HOLD_INTERRUPTS();
        SyncRepWaitForLSN(record, true);
        RESUME_INTERRUPTS();
    });
    return is_on_standbys(record);
}

void raise_not_on_standbys() {
    ereport(ERROR, (errcode(ERRCODE_QUERY_CANCELED),
                    errmsg("canceled while waiting for the synchronous standbys"),
                    errdetail("A lease is granted only when a failover cannot lose it.")));
}

void flush_store(XLogRecPtr record) {
    if (!try_flush_store(record))
        raise_not_on_standbys();
}

extern "C" {

// Rows of another server, which logical replication would apply, are skipped.
Datum lease_store_trigger(PG_FUNCTION_ARGS) {
    auto* trigger = reinterpret_cast<TriggerData*>(fcinfo->context);
    if (!CALLED_AS_TRIGGER(fcinfo))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("lease_store_trigger must be called as a trigger")));
    if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event) &&
        SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA)
        return Datum{0};
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("table interlock_internal.lease_store is written by the server alone")));
}
}

} // namespace interlock::lease
