// The trigger that holds new rows to the initial states, and how it knows a row that only moves to
// another partition.

#include "execution/partition_move.h"
#include "server/scope.h"
#include "server/transaction_end.h"
#include "table/row.h"
#include "transition/errors.h"

namespace interlock::transition {

namespace {

struct NamedText {
    NameData column;
    char* text;
};

// A row that an update moved out of its partition.
struct MovedRow {
    dlist_node place;
    Oid root;
    NameData column;
    const char* state; // null is no state
    NamedText* key;    // of the partition that it left: the other one may have another key
    int key_count;
    CommandId command; // the inserted row is the work of this command or of one that began before
    SubTransactionId subtransaction;
};

} // namespace

// In the order of the moves, in which the server fires the triggers of the inserts, too. An insert
// removes its entry. Entries that are left when a trigger suppresses the insert are freed with the
// transaction.
static dlist_head moves = DLIST_STATIC_INIT(moves);

static MovedRow* move_at(dlist_node* place) {
    static_assert(offsetof(MovedRow, place) == 0);
    return reinterpret_cast<MovedRow*>(place);
}

static void remove_move(MovedRow* moved) {
    dlist_delete(&moved->place);
    for (int i = 0; i < moved->key_count; i++)
        if (moved->key[i].text != nullptr)
            pfree(moved->key[i].text);
    pfree(moved->key);
    pfree(moved);
}

static void forget_moves(XactEvent event, void*) {
    if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
        return;
    dlist_init(&moves);
}

static MovedRow* last_move() {
    return dlist_is_empty(&moves) ? nullptr : move_at(dlist_tail_node(&moves));
}

// Subtransactions are numbered in the order in which they begin. So the last notes are those of the
// one that ends and of those within it, also when these have committed.
static void end_moves_of_subtransaction(SubXactEvent event, SubTransactionId ended,
                                        SubTransactionId, void*) {
    if (event != SUBXACT_EVENT_ABORT_SUB)
        return;
    for (MovedRow* last; (last = last_move()) != nullptr && last->subtransaction >= ended;)
        remove_move(last);
}

static bool same_text(const char* left, const char* right) {
    return left == nullptr || right == nullptr ? left == right : strcmp(left, right) == 0;
}

// Generated columns have no value yet when a row is about to move.
static void set_key(MovedRow* moved, const TableInfo* info, HeapTuple row) {
    moved->key = static_cast<NamedText*>(palloc(sizeof(NamedText) * (info->key.count + 1)));
    for (int i = 0; i < info->key.count; i++) {
        AttrNumber attnum = info->key.columns[i].attnum;
        Form_pg_attribute attribute = TupleDescAttr(info->columns, attnum - 1);
        if (attribute->attgenerated == '\0')
            moved->key[moved->key_count++] = {attribute->attname,
                                              SPI_getvalue(row, info->columns, attnum)};
    }
}

static bool has_key(const MovedRow& moved, const TableInfo* info, HeapTuple row) {
    for (int i = 0; i < moved.key_count; i++) {
        AttrNumber attnum = find_attribute(info->columns, NameStr(moved.key[i].column));
        if (attnum == InvalidAttrNumber ||
            !same_text(moved.key[i].text, SPI_getvalue(row, info->columns, attnum)))
            return false;
    }
    return true;
}

// Whether the inserted row is one that was moved; each move counts for one insert.
static bool take_move(Relation rel, const TableInfo* info, const StateMachine* machine,
                      HeapTuple row, const char* state) {
    // COPY FREEZE has no command of its own in its rows, and moves none.
    if (dlist_is_empty(&moves) || HeapTupleHeaderXminFrozen(row->t_data))
        return false;
    Oid root = root_of(rel);
    CommandId command = HeapTupleHeaderGetCmin(row->t_data);
    for (dlist_node* place = moves.head.next; place != &moves.head; place = place->next) {
        CHECK_FOR_INTERRUPTS(); // moves that no trigger takes stay to the end of the transaction
        MovedRow* moved = move_at(place);
        if (moved->root == root && command <= moved->command &&
            strcmp(NameStr(moved->column), NameStr(machine->name)) == 0 &&
            same_text(moved->state, state) && has_key(*moved, info, row)) {
            remove_move(moved);
            return true;
        }
    }
    return false;
}

void note_move(Relation rel, const TableInfo* info, const StateMachine* machine, HeapTuple new_row,
               const char* state) {
    static bool registered = false;
    register_once(&registered, forget_moves, end_moves_of_subtransaction);
    MovedRow* moved = in_context(TopTransactionContext, [&] {
        auto* result = static_cast<MovedRow*>(palloc0(sizeof(MovedRow)));
        result->state = state != nullptr ? pstrdup(state) : nullptr;
        set_key(result, info, new_row);
        return result;
    });
    moved->root = root_of(rel);
    moved->column = machine->name;
    moved->command = GetCurrentCommandId(true); // used, so that later commands get a higher one
    moved->subtransaction = GetCurrentSubTransactionId();
    dlist_push_tail(&moves, &moved->place);
}

extern "C" {
PG_FUNCTION_INFO_V1(initial_state_trigger);

Datum initial_state_trigger(PG_FUNCTION_ARGS) {
    TriggerData* trigger = row_trigger(fcinfo, "initial_state_trigger", TRIGGER_EVENT_AFTER);
    if (!TRIGGER_FIRED_BY_INSERT(trigger->tg_event) || fires_in_restore(trigger))
        return Datum{0};
    Relation rel = trigger->tg_relation;
    const TableInfo* info = table_info(rel);
    const StateMachine* machine = machine_of_trigger(rel, info, trigger->tg_trigger);
    const char* state = state_of_row(machine, RelationGetDescr(rel), trigger->tg_trigtuple);
    if (!may_start(machine, state) && !take_move(rel, info, machine, trigger->tg_trigtuple, state))
        refuse_state(rel, info, machine, trigger->tg_trigtuple, {.is_new = true, .to = state},
                     true);
    return Datum{0};
}
}

} // namespace interlock::transition
