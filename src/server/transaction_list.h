// A list of what a transaction has done, in order. It lasts until the transaction ends.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// To be used as a static variable. Its memory belongs to the transaction. An XactCallback calls
// forget() at the end, and nothing is freed before.
template <typename Item>
struct TransactionList {
    static_assert(std::is_trivially_copyable_v<Item>);

    // The items from `first` to the next run belong to one subtransaction. So the end of a
    // subtransaction takes the same time for any number of items, and needs no loop that a cancel
    // would have to end.
    struct Run {
        SubTransactionId subtransaction;
        int first;
    };

    Item* items;
    int count;
    int room;
    Run* runs;
    int run_count;
    int run_room;

    Item& operator[](int i) const { return items[i]; }
    Item* begin() const { return items; }
    Item* end() const { return items + count; }

    // Makes room for one more item, so that the next add() raises nothing.
    void need_room() {
        if (count == room)
            grow();
        if (run_count == run_room)
            grow_array(&runs, &run_room);
    }

    void grow() { grow_array(&items, &room); }

    // Adds an item of the current subtransaction.
    void add(const Item& item) {
        need_room();
        forget_empty_runs();
        SubTransactionId current = GetCurrentSubTransactionId();
        if (run_count == 0 || runs[run_count - 1].subtransaction != current)
            runs[run_count++] = {current, count};
        items[count++] = item;
    }

    void remove(int i) {
        memmove(&items[i], &items[i + 1], sizeof(Item) * (count - i - 1));
        count--;
        for (int run = run_count - 1; run >= 0 && runs[run].first > i; run--)
            runs[run].first--;
    }

    void forget() { *this = {}; }

    // The index of the first item of the subtransaction, which is the current one or one that is
    // ending. Its items are the last items of the list. Returns `count` if it has none.
    int first_of(SubTransactionId subtransaction) {
        forget_empty_runs();
        bool has_items = run_count > 0 && runs[run_count - 1].subtransaction == subtransaction;
        return has_items ? runs[run_count - 1].first : count;
    }

    // After the commit of a subtransaction its items belong to its parent. `first` is the result of
    // first_of().
    void give_to(SubTransactionId parent, int first) {
        if (first == count)
            return;
        runs[run_count - 1].subtransaction = parent;
        if (run_count > 1 && runs[run_count - 2].subtransaction == parent)
            run_count--;
    }

private:
    // Empty runs belong to subtransactions that were rolled back.
    void forget_empty_runs() {
        while (run_count > 0 && runs[run_count - 1].first >= count)
            run_count--;
    }

    template <typename Element>
    static void grow_array(Element** elements, int* room) {
        int more = Max(8, *room * 2);
        size_t size = sizeof(Element) * more;
        *elements = static_cast<Element*>(*elements == nullptr
                                              ? MemoryContextAlloc(TopTransactionContext, size)
                                              : repalloc_huge(*elements, size));
        *room = more;
    }
};

} // namespace interlock::inline server
