#include "version/asserted.h"

#include "server/scope.h"
#include "server/transaction_end.h"
#include "server/transaction_list.h"

namespace interlock::version {

namespace {

struct Place {
    Oid relid; // hash key
    BlockIdData block;
    OffsetNumber offset;
    uint16 padding;
};

} // namespace

static_assert(sizeof(Place) == sizeof(Oid) + sizeof(BlockIdData) + 2 * sizeof(uint16));

// The places in the order of their assertions, each once, and the set of them, in the transaction's
// context.
static TransactionList<Place> assertions = {};
static HTAB* places = nullptr;

static Place place_of(Oid relid, const ItemPointerData& place) {
    return {relid, place.ip_blkid, place.ip_posid, 0};
}

static void end_transaction(XactEvent event, void*) {
    if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
        return;
    assertions.forget();
    places = nullptr;
}

static void end_subtransaction(SubXactEvent event, SubTransactionId ended, SubTransactionId parent,
                               void*) {
    if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
        return;
    int first = assertions.first_of(ended);
    if (event == SUBXACT_EVENT_COMMIT_SUB) {
        assertions.give_to(parent, first);
        return;
    }
    for (int i = first; i < assertions.count; i++)
        hash_search(places, &assertions[i], HASH_REMOVE, nullptr);
    assertions.count = first;
}

static void need_places() {
    static bool registered = false;
    register_once(&registered, end_transaction, end_subtransaction);
    if (places != nullptr)
        return;
    HASHCTL control = {};
    control.keysize = sizeof(Place);
    control.entrysize = sizeof(Place);
    control.hcxt = TopTransactionContext;
    places =
        hash_create("interlock asserted rows", 16, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

void note_asserted(Oid relid, const ItemPointerData& row) {
    need_places();
    assertions.need_room(); // else an error could leave a place that no assertion removes
    Place place = place_of(relid, row);
    bool found;
    hash_search(places, &place, HASH_ENTER, &found);
    if (!found)
        assertions.add(place);
}

bool is_asserted(Oid relid, const ItemPointerData& row) {
    if (assertions.count == 0)
        return false;
    Place place = place_of(relid, row);
    return hash_search(places, &place, HASH_FIND, nullptr) != nullptr;
}

} // namespace interlock::version
