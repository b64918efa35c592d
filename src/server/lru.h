// Lists cached things of a session in the order of their use, to evict the least recently used
// thing.
//
// A thing that the current transaction has used is not evicted, because a calling function may
// still hold a pointer to it.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// Each cached thing has a member of this type.
struct LastUse {
    dlist_node place;
    LocalTransactionId transaction;
};

inline void note_first_use(dlist_head* order, LastUse* use) {
    use->transaction = local_transaction();
    dlist_push_head(order, &use->place);
}

inline void note_use(dlist_head* order, LastUse* use) {
    use->transaction = local_transaction();
    dlist_move_head(order, &use->place);
}

inline void forget_use(LastUse* use) { dlist_delete(&use->place); }

// The thing at a place in the list. Its member is named `use`. (The server's macro for this is not
// C++.)
template <typename T>
T* thing_at(dlist_node* place) {
    return reinterpret_cast<T*>(reinterpret_cast<char*>(place) - offsetof(T, use) -
                                offsetof(LastUse, place));
}

// The most recently used thing, or null if there is none.
template <typename T>
T* latest(dlist_head* order) {
    return dlist_is_empty(order) ? nullptr : thing_at<T>(dlist_head_node(order));
}

// The least recently used thing, or null if this transaction has used all of them.
template <typename T>
T* longest_unused(dlist_head* order) {
    if (dlist_is_empty(order))
        return nullptr;
    T* oldest = thing_at<T>(dlist_tail_node(order));
    return oldest->use.transaction != local_transaction() ? oldest : nullptr;
}

} // namespace interlock::inline server
