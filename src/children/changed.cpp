#include "children/changed.h"

#include "server/transaction_end.h"
#include "server/transaction_list.h"

namespace interlock::children {

namespace {

// What has happened, in this order. A rollback to a savepoint takes back the last ones.
struct Happened {
    ChangedParent* parent;
    bool moved;      // else noted
    bool restricted; // noted in a security-restricted operation
};

} // namespace

// In the transaction's context.
static HTAB* parents = nullptr;
static ParentColumns* columns = nullptr;
static const char* search_path = nullptr; // the last one
static TransactionList<Happened> happened = {};
static int pending = 0;
static int restricted = 0;    // how many were noted in such an operation
static int first_pending = 0; // none before it

static void forget_all() {
    parents = nullptr;
    columns = nullptr;
    search_path = nullptr;
    happened.forget();
    pending = first_pending = restricted = 0;
}

[[noreturn]] static void raise_pending(const ChangedParent& left) {
    const char* child = get_rel_name(left.child);
    ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                    errmsg("a change of children in table \"%s\" has not reached their parent",
                           child != nullptr ? child : ""),
                    errhint("Before you drop a trigger of interlock.guard_children or detach a "
                            "partition, run SET CONSTRAINTS ALL IMMEDIATE. Only triggers that "
                            "interlock.guard_children created may call %s.%s().",
                            "interlock_internal", kChangesParent)));
}

// At the end of a transaction the events that move the parents have fired before. One is left if a
// trigger of others has called changes_parent(): its own event does nothing, and ours was not
// queued. So it is when a trigger was dropped since: its events do not fire.
//
// A restricted operation defers no trigger, so at the end of its subtransaction they have fired,
// too. The error is that of the table whose code has left one, and not of a transaction that tries
// many tables.
static void refuse_pending(int first, bool only_restricted) {
    for (int i = first; i < happened.count; i++) {
        CHECK_FOR_INTERRUPTS();
        const ChangedParent& parent = *happened[i].parent;
        if ((happened[i].restricted || !only_restricted) && is_pending(parent) &&
            SearchSysCacheExists1(RELOID, ObjectIdGetDatum(parent.name.by->table)))
            raise_pending(parent);
    }
}

static void end_transaction(XactEvent event, void*) {
    switch (event) {
    case XACT_EVENT_PRE_COMMIT:
    case XACT_EVENT_PRE_PREPARE:
        if (pending > 0)
            refuse_pending(0, false);
        return;
    case XACT_EVENT_COMMIT:
    case XACT_EVENT_ABORT:
    case XACT_EVENT_PREPARE:
        forget_all();
        return;
    default:
        return;
    }
}

static void take_back(const Happened& last) {
    if (last.moved) {
        last.parent->moved = false;
        pending++;
    } else {
        last.parent->noted = false;
        pending--;
        restricted -= last.restricted ? 1 : 0;
    }
}

static void end_subtransaction(SubXactEvent event, SubTransactionId ended, SubTransactionId outer,
                               void*) {
    if (event == SUBXACT_EVENT_PRE_COMMIT_SUB && pending > 0 && restricted > 0)
        refuse_pending(happened.first_of(ended), true);
    int first = happened.first_of(ended);
    if (event == SUBXACT_EVENT_COMMIT_SUB)
        happened.give_to(outer, first);
    if (event != SUBXACT_EVENT_ABORT_SUB || first == happened.count)
        return;
    for (int i = happened.count - 1; i >= first; i--)
        take_back(happened[i]);
    happened.count = first;
    first_pending = 0;
}

static void add(ChangedParent* parent, bool moved) {
    bool is_restricted = !moved && InSecurityRestrictedOperation();
    happened.add({parent, moved, is_restricted});
    restricted += is_restricted ? 1 : 0;
}

// --- Finding one ---------------------------------------------------------------------------------

static uint32 hash_of_name(const void* key, Size) {
    return static_cast<const ChangedParent::Name*>(key)->hash;
}

static int compare_names(const void* left, const void* right, Size) {
    const auto* one = static_cast<const ChangedParent::Name*>(left);
    const auto* other = static_cast<const ChangedParent::Name*>(right);
    if (one->by != other->by)
        return 1;
    for (int i = 0; i < one->by->count; i++)
        if (!datum_image_eq(one->values[i], other->values[i], one->by->by_value[i],
                            one->by->lengths[i]))
            return 1;
    return 0;
}

static void create_table() {
    static bool registered = false;
    register_once(&registered, end_transaction, end_subtransaction);
    HASHCTL control = {};
    control.keysize = sizeof(ChangedParent::Name);
    control.entrysize = sizeof(ChangedParent);
    control.hash = hash_of_name;
    control.match = compare_names;
    control.hcxt = TopTransactionContext;
    parents = hash_create("interlock changed parents", 16, &control,
                          HASH_ELEM | HASH_FUNCTION | HASH_COMPARE | HASH_CONTEXT);
}

static bool are_of(const ParentColumns& by, const ChildGuard& guard) {
    if (by.table != guard.parent || by.count != guard.count)
        return false;
    for (int i = 0; i < guard.count; i++)
        if (by.columns[i] != guard.columns[i].parent || by.types[i] != guard.columns[i].parent_type)
            return false;
    return true;
}

static ParentColumns* columns_of(const ChildGuard& guard) {
    for (ParentColumns* by = columns; by != nullptr; by = by->next)
        if (are_of(*by, guard))
            return by;
    auto* by = static_cast<ParentColumns*>(
        MemoryContextAllocZero(TopTransactionContext, sizeof(ParentColumns)));
    by->table = guard.parent;
    by->count = guard.count;
    by->has_marker = true; // until it is looked at
    for (int i = 0; i < guard.count; i++) {
        by->columns[i] = guard.columns[i].parent;
        by->types[i] = guard.columns[i].parent_type;
        by->lengths[i] = guard.columns[i].length;
        by->by_value[i] = guard.columns[i].by_value;
    }
    by->next = columns;
    columns = by;
    return by;
}

static const Datum* copy_values(const ParentColumns& by, const Datum* values) {
    MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
    auto* copies = static_cast<Datum*>(palloc(sizeof(Datum) * by.count));
    for (int i = 0; i < by.count; i++)
        copies[i] = datumCopy(values[i], by.by_value[i], by.lengths[i]);
    MemoryContextSwitchTo(caller);
    return copies;
}

ChangedParent* changed_parent(const ChildGuard& guard, const Datum* values) {
    if (parents == nullptr)
        create_table();
    ChangedParent::Name name = {columns_of(guard), 0, values};
    for (int i = 0; i < guard.count; i++)
        name.hash = hash_combine(
            name.hash, datum_image_hash(values[i], name.by->by_value[i], name.by->lengths[i]));
    auto* found = static_cast<ChangedParent*>(hash_search(parents, &name, HASH_FIND, nullptr));
    if (found != nullptr)
        return found;
    name.values = copy_values(*name.by, values);
    found = static_cast<ChangedParent*>(hash_search(parents, &name, HASH_ENTER, nullptr));
    found->noted = found->moved = false;
    found->asked = InvalidCommandId;
    found->asked_by = InvalidOid;
    return found;
}

static const char* present_search_path() {
    if (search_path == nullptr || strcmp(search_path, namespace_search_path) != 0)
        search_path = MemoryContextStrdup(TopTransactionContext, namespace_search_path);
    return search_path;
}

void note_changed(ChangedParent* parent, Oid child) {
    Assert(!parent->noted);
    const char* path = present_search_path(); // what can fail comes first
    add(parent, false);
    parent->noted = true;
    parent->moved = false;
    parent->child = child;
    parent->user = GetUserId();
    parent->search_path = path;
    pending++;
}

void note_moved(ChangedParent* parent) {
    Assert(is_pending(*parent));
    add(parent, true);
    parent->moved = true;
    pending--;
}

int count_pending() { return pending; }

void each_pending(VisitParent visit, void* closure) {
    int first = happened.count;
    for (int i = happened.count - 1; i >= first_pending; i--) {
        ChangedParent* parent = happened[i].parent;
        if (happened[i].moved || !is_pending(*parent))
            continue;
        first = i;
        visit(closure, parent);
    }
    first_pending = first;
}

} // namespace interlock::children
