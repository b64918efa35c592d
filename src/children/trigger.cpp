// The trigger that moves the parents.

#include "children/parent.h"
#include "table/own_table.h"

namespace interlock::children {

static bool is_fired_by_move();
static void require_own_trigger(const TriggerData* trigger);

extern "C" {
PG_FUNCTION_INFO_V1(children_trigger);

Datum children_trigger(PG_FUNCTION_ARGS) {
    TriggerData* trigger = row_trigger(fcinfo, "children_trigger", TRIGGER_EVENT_AFTER);
    require_own_trigger(trigger);
    if (count_pending() > 0 && !is_fired_by_move())
        move_pending_parents();
    return 0;
}
}

// The depth of triggers at which parents are being moved; null: they are not.
static int* moves_at = nullptr;

// A parent that is moved may be a child itself. Where its trigger is not deferred, it fires at the
// end of that write; the move that writes continues until nothing is pending.
static bool is_fired_by_move() { return moves_at != nullptr && trigger_depth() == *moves_at + 1; }

static void require_own_trigger(const TriggerData* trigger) {
    for (const ChildGuard& guard : guards_of(table_info(trigger->tg_relation)))
        for (const char* name : guard.triggers)
            if (name != nullptr && strcmp(name, trigger->tg_trigger->tgname) == 0)
                return;
    raise_forged(trigger->tg_relation, trigger->tg_trigger->tgname, "guard_children");
}

// --- In which order ------------------------------------------------------------------------------

// Tables that are further from the top first: moving a row of them changes a child of the next. In
// each the rows by their keys.
static int compare_parents(const void* left, const void* right) {
    CHECK_FOR_INTERRUPTS();
    const ChangedParent::Name& one = (*static_cast<ChangedParent* const*>(left))->name;
    const ChangedParent::Name& other = (*static_cast<ChangedParent* const*>(right))->name;
    if (one.by->table != other.by->table)
        return one.by->table < other.by->table ? -1 : 1;
    if (one.by != other.by)
        return one.by->key->index < other.by->key->index ? -1 : 1;
    const UniqueKey& key = *one.by->key;
    for (int i = 0; i < key.count; i++) {
        int place = one.by->places[i];
        int order = DatumGetInt32(FunctionCall2Coll(const_cast<FmgrInfo*>(&key.columns[i].compare),
                                                    key.columns[i].collation, one.values[place],
                                                    other.values[place]));
        if (order != 0)
            return order;
    }
    return 0;
}

namespace {

struct Turn {
    ChangedParent** parents;
    int count;
};

} // namespace

// All that are pending.
static Turn pending_parents() {
    Turn turn = {};
    turn.parents = static_cast<ChangedParent**>(
        MemoryContextAllocHuge(CurrentMemoryContext, sizeof(ChangedParent*) * count_pending()));
    each_pending(
        [](void* closure, ChangedParent* parent) {
            auto* all = static_cast<Turn*>(closure);
            all->parents[all->count++] = parent;
        },
        &turn);
    return turn;
}

// Keeps those of the highest level. A table that is gone has nothing to move.
static void keep_highest(Turn* turn) {
    constexpr int kUnknown = -1;
    int highest = 0;
    for (int i = 0; i < turn->count; i++)
        turn->parents[i]->name.by->level = kUnknown;
    for (int i = 0; i < turn->count; i++) {
        ParentColumns* by = turn->parents[i]->name.by;
        if (by->level == kUnknown)
            by->level = find_parent_key(by) ? levels_above(by->table) : kMostLevels + 1;
        highest = Max(highest, by->level);
    }
    int kept = 0;
    for (int i = 0; i < turn->count; i++)
        if (turn->parents[i]->name.by->level == highest)
            turn->parents[kept++] = turn->parents[i];
    turn->count = kept;
    if (highest <= kMostLevels)
        qsort(turn->parents, turn->count, sizeof(ChangedParent*), compare_parents);
}

// Each is noted before it is moved: what its triggers do may come here again.
static void move_all() {
    while (count_pending() > 0) {
        Turn turn = pending_parents();
        keep_highest(&turn);
        for (int i = 0; i < turn.count; i++) {
            CHECK_FOR_INTERRUPTS();
            if (!is_pending(*turn.parents[i]))
                continue;
            note_moved(turn.parents[i]);
            move_parent(*turn.parents[i]);
        }
        pfree(turn.parents);
    }
}

void move_pending_parents() {
    int depth = trigger_depth();
    with_current(&moves_at, &depth, [] { move_all(); });
}

} // namespace interlock::children
