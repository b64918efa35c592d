// What a transaction has done, in order, until it ends.
#pragma once

#include "server/server.h"

namespace interlock {

// A static variable. Its memory is that of the transaction: an XactCallback calls forget() at the
// end, and nothing is freed before.
template <typename Item>
struct TransactionList {
    static_assert(std::is_trivially_copyable_v<Item>);

    Item* items;
    int count;
    int room;

    Item& operator[](int i) const { return items[i]; }
    Item* begin() const { return items; }
    Item* end() const { return items + count; }

    // For one more item, so that the next add() raises nothing.
    void need_room() {
        if (count == room)
            grow();
    }

    void grow() {
        int more = Max(8, room * 2);
        size_t size = sizeof(Item) * more;
        items =
            static_cast<Item*>(items == nullptr ? MemoryContextAlloc(TopTransactionContext, size)
                                                : repalloc_huge(items, size));
        room = more;
    }

    void add(const Item& item) {
        need_room();
        items[count++] = item;
    }

    void forget() { *this = {}; }

    // --- Of items with a member `subtransaction` -------------------------------------------------

    // When a subtransaction ends, its items are the last ones, from this one on.
    int first_of(SubTransactionId ended) const {
        int first = count;
        while (first > 0 && items[first - 1].subtransaction == ended)
            first--;
        return first;
    }

    // After its commit they are those of its parent.
    void give_to(SubTransactionId parent, int first) {
        for (int i = first; i < count; i++)
            items[i].subtransaction = parent;
    }
};

} // namespace interlock
