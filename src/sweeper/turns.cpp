#include "sweeper/turns.h"

#include "table/name.h"

namespace interlock {

namespace {

struct InTurn {
    Oid table;
    Oid owner;
    uint64 lot; // of the owner in this run
    int round;
};

int by_owner(const void* left, const void* right) {
    const auto& a = *static_cast<const InTurn*>(left);
    const auto& b = *static_cast<const InTurn*>(right);
    if (a.lot != b.lot)
        return a.lot < b.lot ? -1 : 1;
    if (a.owner != b.owner)
        return a.owner < b.owner ? -1 : 1;
    return a.table < b.table ? -1 : 1;
}

int by_round(const void* left, const void* right) {
    const auto& a = *static_cast<const InTurn*>(left);
    const auto& b = *static_cast<const InTurn*>(right);
    return a.round != b.round ? a.round - b.round : by_owner(left, right);
}

// Of one owner: after the table in which the last run stopped, else from any on.
void number_rounds(InTurn* first, int count, Oid last) {
    int start = static_cast<int>(first->lot % count);
    for (int i = 0; i < count; i++)
        if (first[i].table == last)
            start = i + 1;
    for (int i = 0; i < count; i++)
        first[i].round = (i - start + count) % count;
}

// In a transaction.
List* order(List* tables, Oid last) {
    int count = list_length(tables);
    auto* turns = static_cast<InTurn*>(palloc(sizeof(InTurn) * (count + 1)));
    uint32 draw = pg_prng_uint32(&pg_global_prng_state);
    Oid last_owner = owner_of_table(last);
    for (int i = 0; i < count; i++) {
        Oid table = list_nth_oid(tables, i);
        Oid owner = owner_of_table(table);
        uint64 lot = murmurhash32(owner ^ draw);
        turns[i] = {table, owner, owner == last_owner ? lot + PG_UINT32_MAX : lot, 0};
    }
    qsort(turns, count, sizeof(InTurn), by_owner);
    for (int i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && turns[end].owner == turns[i].owner;)
            end++;
        number_rounds(turns + i, end - i, last);
    }
    qsort(turns, count, sizeof(InTurn), by_round);
    List* result = NIL;
    for (int i = 0; i < count; i++)
        result = lappend_oid(result, turns[i].table);
    return result;
}

} // namespace

List* in_turns(SweepRun* run, List* tables, Oid last) {
    List* result = tables;
    char message[kErrorBytes] = "";
    MemoryContext context = CurrentMemoryContext;
    if (!in_transaction(message,
                        [&] { result = in_context(context, [&] { return order(tables, last); }); }))
        note_failure(run, "sweeper", message);
    return result;
}

} // namespace interlock
