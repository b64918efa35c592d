#include "escrow/transaction.h"

#include "server/transaction_end.h"
#include "server/transaction_list.h"

namespace interlock::escrow {

namespace {

struct GrantItem {
    EscrowEntry* entry;
    Effects effects;
    int note; // while it is being prepared; -1: none
};

} // namespace

// A list that is full, and longer than this, is merged before it grows.
constexpr int kMergedFrom = 64;

static TransactionList<GrantItem> grants;
static TransactionList<int64> own_rows; // their counters
static bool registered = false;

static void end_grants(int first, bool committed) {
    for (int i = first; i < grants.count; i++)
        end_pin(grants[i].entry, grants[i].effects, committed);
    grants.count = first;
}

static int compare_entries(const void* left, const void* right) {
    auto a = reinterpret_cast<uintptr_t>(static_cast<const GrantItem*>(left)->entry);
    auto b = reinterpret_cast<uintptr_t>(static_cast<const GrantItem*>(right)->entry);
    return a < b ? -1 : a > b ? 1 : 0;
}

// One item for each entry, of those from `first` on, which are of one subtransaction. Raises
// nothing.
static void merge_grants(int first) {
    qsort(grants.items + first, grants.count - first, sizeof(GrantItem), compare_entries);
    int merged = first;
    for (int i = first; i < grants.count; i++) {
        GrantItem* last = merged > first ? &grants[merged - 1] : nullptr;
        if (last != nullptr && last->entry == grants[i].entry) {
            last->effects.add(grants[i].effects);
            end_pin(grants[i].entry, {}, true);
        } else {
            grants[merged++] = grants[i];
        }
    }
    grants.count = merged;
}

// PREPARE may still fail; then the notes are freed with the list.
static void reserve_notes() {
    if (grants.count > 1)
        merge_grants(0);
    for (GrantItem& item : grants)
        if (!reserve_note(item.entry, item.effects, &item.note))
            ereport(ERROR,
                    (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                     errmsg("not enough memory for the escrow counters of prepared "
                            "transactions"),
                     errhint("Raise interlock.max_escrow_counters, or commit or roll back prepared "
                             "transactions.")));
}

static void end_transaction(XactEvent event, void*) {
    switch (event) {
    case XACT_EVENT_PRE_PREPARE:
        reserve_notes();
        return;
    case XACT_EVENT_PREPARE:
        for (GrantItem& item : grants)
            keep_note(item.note);
        break;
    case XACT_EVENT_COMMIT:
        end_grants(0, true);
        break;
    case XACT_EVENT_ABORT:
        for (GrantItem& item : grants)
            if (item.note >= 0)
                free_note(item.note);
        end_grants(0, false);
        break;
    default:
        return;
    }
    grants.forget();
    own_rows.forget();
}

static void end_subtransaction(SubXactEvent event, SubTransactionId ended, SubTransactionId parent,
                               void*) {
    if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
        return;
    int first_grant = grants.first_of(ended);
    int first_row = own_rows.first_of(ended);
    if (event == SUBXACT_EVENT_COMMIT_SUB) {
        grants.give_to(parent, first_grant);
        own_rows.give_to(parent, first_row);
        return;
    }
    end_grants(first_grant, false);
    own_rows.count = first_row;
}

void need_grant_room() {
    register_once(&registered, end_transaction, end_subtransaction);
    if (grants.count == grants.room && grants.count >= kMergedFrom) {
        merge_grants(grants.first_of(GetCurrentSubTransactionId()));
        if (grants.count > grants.room / 2) // else it would soon be merged again
            grants.grow();
    }
    grants.need_room();
}

void note_grant(EscrowEntry* entry, const Delta& delta) {
    grants.add({entry, effects_of(delta), -1});
}

Effects own_effects(const EscrowEntry* entry) {
    Effects sum = {};
    for (const GrantItem& item : grants)
        if (item.entry == entry)
            sum.add(item.effects);
    return sum;
}

void note_own_row(int64 counter) {
    register_once(&registered, end_transaction, end_subtransaction);
    own_rows.add(counter);
}

bool wrote_row_of(int64 counter) {
    for (int64 own : own_rows)
        if (own == counter)
            return true;
    return false;
}

} // namespace interlock::escrow
