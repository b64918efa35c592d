#include "version/unseen.h"

#include "server/transaction_end.h"

namespace interlock::version {

Oid* unseen_write = nullptr;

namespace {

// No command has the number of another one, also after a rollback to a savepoint. So nothing is
// forgotten before the transaction ends.
struct Writing {
    Oid table;
    CommandId command;
};

} // namespace

static_assert(sizeof(Writing) == sizeof(Oid) + sizeof(CommandId)); // hashed as bytes

static HTAB* unseen = nullptr; // in the transaction's context
static Writing last = {};

static void end_transaction(XactEvent event, void*) {
    if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
        return;
    unseen = nullptr;
    last = {};
}

static void end_subtransaction(SubXactEvent, SubTransactionId, SubTransactionId, void*) {}

static void make_table() {
    static bool registered = false;
    register_once(&registered, end_transaction, end_subtransaction);
    HASHCTL control = {};
    control.keysize = sizeof(Writing);
    control.entrysize = sizeof(Writing);
    control.hcxt = TopTransactionContext;
    unseen =
        hash_create("interlock unseen rows", 16, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

void note_unseen(Oid table, CommandId command) {
    if (unseen == nullptr)
        make_table();
    else if (last.table == table && last.command == command) // another row of the statement
        return;
    Writing writing = {table, command};
    hash_search(unseen, &writing, HASH_ENTER, nullptr);
    last = writing;
}

bool is_unseen(Oid table, HeapTuple row) {
    if (unseen == nullptr)
        return false;
    Writing writing = {table, HeapTupleHeaderGetCmin(row->t_data)};
    return hash_search(unseen, &writing, HASH_FIND, nullptr) != nullptr;
}

} // namespace interlock::version
