#include "version/asserted.h"

#include "server/scope.h"
#include "server/transaction_end.h"

namespace interlock {

namespace {

struct Place {
    Oid relid; // hash key
    BlockIdData block;
    OffsetNumber offset;
    uint16 padding;
};
static_assert(sizeof(Place) == sizeof(Oid) + sizeof(BlockIdData) + 2 * sizeof(uint16));

struct Assertion {
    Place place;
    SubTransactionId subtransaction;
};

// In the transaction's context: the places in the order of their assertions, each once, and the set
// of them.
Assertion* assertions = nullptr;
int assertion_count = 0;
int assertion_room = 0;
HTAB* places = nullptr;

Place place_of(Oid relid, const ItemPointerData& place) {
    return {relid, place.ip_blkid, place.ip_posid, 0};
}

void end_transaction(XactEvent event, void*) {
    if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
        return;
    assertions = nullptr;
    assertion_count = assertion_room = 0;
    places = nullptr;
}

void end_subtransaction(SubXactEvent event, SubTransactionId ended, SubTransactionId parent,
                        void*) {
    if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
        return;
    // Its assertions are the last ones.
    int first = assertion_count;
    while (first > 0 && assertions[first - 1].subtransaction == ended) {
        first--;
        if (event == SUBXACT_EVENT_ABORT_SUB)
            hash_search(places, &assertions[first].place, HASH_REMOVE, nullptr);
        else
            assertions[first].subtransaction = parent;
    }
    if (event == SUBXACT_EVENT_ABORT_SUB)
        assertion_count = first;
}

void make_room() {
    static bool registered = false;
    register_once(&registered, end_transaction, end_subtransaction);
    if (places == nullptr) {
        HASHCTL control = {};
        control.keysize = sizeof(Place);
        control.entrysize = sizeof(Place);
        control.hcxt = TopTransactionContext;
        places = hash_create("interlock asserted rows", 16, &control,
                             HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    }
    if (assertion_count < assertion_room)
        return;
    int room = Max(8, assertion_room * 2);
    size_t size = sizeof(Assertion) * room;
    assertions = static_cast<Assertion*>(assertions == nullptr
                                             ? MemoryContextAlloc(TopTransactionContext, size)
                                             : repalloc_huge(assertions, size));
    assertion_room = room;
}

} // namespace

void note_asserted(Oid relid, const ItemPointerData& row) {
    make_room();
    Place place = place_of(relid, row);
    bool found;
    hash_search(places, &place, HASH_ENTER, &found);
    if (!found)
        assertions[assertion_count++] = {place, GetCurrentSubTransactionId()};
}

bool is_asserted(Oid relid, const ItemPointerData& row) {
    if (assertion_count == 0)
        return false;
    Place place = place_of(relid, row);
    return hash_search(places, &place, HASH_FIND, nullptr) != nullptr;
}

} // namespace interlock
