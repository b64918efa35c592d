// Declaring transitions: checks the owner's declaration and stores it as the arguments of a
// trigger.

#include "transition/define.h"
#include "server/arguments.h"
#include "server/scope.h"
#include "table/configuration_audit.h"
#include "table/facet.h"
#include "table/last_word.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "table/trigger_state.h"
#include "transition/guard.h"
#include "transition/transition.h"

namespace interlock::transition {

namespace {

// A state column has one trigger for updates, and one for inserts if there are initial states.
struct TriggerKind {
    const char* prefix;
    const char* function;
};

} // namespace

constexpr TriggerKind kUpdateTrigger = {"zzz_interlock_transition", "transition_trigger"};
constexpr TriggerKind kInsertTrigger = {"zzz_interlock_initial", "initial_state_trigger"};

static void refuse_clone(Relation rel, const char* name);
static bool has_insert_trigger(Oid relid, const char* column);
static char* canonical_initial(Relation rel, AttrNumber column, const Arguments& arguments, int n);
static const char* repeat_argument(const Arguments& arguments, int n);
static GuardDeclaration guards_argument(Relation rel, AttrNumber column, Jsonb* transitions,
                                        Jsonb* guards);
static const char* update_arguments(Jsonb* transitions, const char* initial, const char* on_repeat,
                                    const GuardDeclaration& guards);

namespace {

// A trigger's name, and the command that creates or replaces it.
struct TriggerCommand {
    const char* name;
    char* command;
};

} // namespace

static TriggerCommand create_trigger(Relation rel, const TriggerKind& kind, const char* event,
                                     const char* column, const char* condition,
                                     const char* more_arguments);

extern "C" {
PG_FUNCTION_INFO_V1(define_transitions);
PG_FUNCTION_INFO_V1(drop_transitions);

Datum define_transitions(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    const char* name = arguments.name(1, "state_column");
    const char* on_repeat = repeat_argument(arguments, 4);
    // Dropping a trigger takes the strongest lock; upgrading to it later could deadlock.
    bool drops = arguments.is_null(3) && has_insert_trigger(arguments.relation(0), name);
    Relation rel =
        open_own_table(arguments.relation(0), drops ? AccessExclusiveLock : ShareRowExclusiveLock);
    TableChange change = begin_change(arguments, rel);
    AttrNumber column = column_number(rel, name);
    refuse_clone(rel, name);
    check_state_column(rel, column);
    Jsonb* transitions = canonical_transitions(rel, column, arguments.jsonb(2, "transitions"));
    char* initial = canonical_initial(rel, column, arguments, 3);
    GuardDeclaration guards =
        guards_argument(rel, column, transitions, arguments.jsonb(5, "guards"));
    TriggerCommand on_update =
        create_trigger(rel, kUpdateTrigger, "BEFORE UPDATE", name, guards.condition,
                       update_arguments(transitions, initial, on_repeat, guards));
    require_last_word_of(rel, on_update.name, TRIGGER_TYPE_UPDATE);
    TriggerCommand on_insert = {};
    char* no_insert = nullptr;
    if (arguments.is_null(3))
        no_insert = drop_of_column_trigger(rel, kInsertTrigger.function, name);
    else
        on_insert = create_trigger(rel, kInsertTrigger, "AFTER INSERT", name, "", "");
    Oid relid = RelationGetRelid(rel);
    close_table(rel);
    with_spi([&] {
        replace_trigger(relid, on_update.name, on_update.command);
        if (on_insert.command != nullptr)
            replace_trigger(relid, on_insert.name, on_insert.command);
        if (no_insert != nullptr)
            run_command(no_insert);
    });
    record_change(change);
    PG_RETURN_VOID();
}

Datum drop_transitions(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    const char* name = arguments.name(1, "state_column");
    Relation rel = open_own_table(arguments.relation(0), AccessExclusiveLock);
    TableChange change = begin_change(arguments, rel);
    refuse_clone(rel, name);
    // Unlike a write this accepts that the column is missing: dropping is the remedy then.
    char* on_update = drop_of_column_trigger(rel, kUpdateTrigger.function, name);
    char* on_insert = drop_of_column_trigger(rel, kInsertTrigger.function, name);
    if (on_update == nullptr && on_insert == nullptr)
        raise_no_transitions(rel, name);
    close_table(rel);
    with_spi([&] {
        if (on_update != nullptr)
            run_command(on_update);
        if (on_insert != nullptr)
            run_command(on_insert);
    });
    record_change(change);
    PG_RETURN_VOID();
}
}

static void refuse_clone(Relation rel, const char* name) {
    for (const StateMachine& machine : machines_of(table_info(rel)))
        if (strcmp(NameStr(machine.name), name) == 0)
            refuse_partition(rel, machine.is_clone);
}

// The initial states as a JSON array, or an empty string when every state is.
static char* canonical_initial(Relation rel, AttrNumber column, const Arguments& arguments, int n) {
    if (arguments.is_null(n))
        return pstrdup("");
    Datum* states;
    bool* nulls;
    int count;
    deconstruct_array(DatumGetArrayTypeP(arguments.value(n)), TEXTOID, -1, false, TYPALIGN_INT,
                      &states, &nulls, &count);
    List* texts = NIL;
    for (int i = 0; i < count; i++) {
        CHECK_FOR_INTERRUPTS();
        if (nulls[i])
            refuse_nulls("initial");
        texts = lappend(texts, TextDatumGetCString(states[i]));
    }
    return declaration_text("initial", canonical_states(rel, column, texts));
}

static const char* repeat_argument(const Arguments& arguments, int n) {
    const char* on_repeat = arguments.string(n, "on_repeat");
    if (strcmp(on_repeat, kAllowRepeats) != 0 && strcmp(on_repeat, kRejectRepeats) != 0)
        refuse_value("on_repeat", on_repeat, "Use 'allow' or 'reject'.");
    return on_repeat;
}

static GuardDeclaration guards_argument(Relation rel, AttrNumber column, Jsonb* transitions,
                                        Jsonb* guards) {
    return declare_guards(rel, machine_to_declare(rel, column, transitions), guards);
}

// Behind the name of the column.
static const char* update_arguments(Jsonb* transitions, const char* initial, const char* on_repeat,
                                    const GuardDeclaration& guards) {
    char* arguments =
        psprintf(", %s, %s, %s", quote_literal_cstr(declaration_text("transitions", transitions)),
                 quote_literal_cstr(initial), quote_literal_cstr(on_repeat));
    return guards.argument[0] == '\0'
               ? arguments
               : psprintf("%s, %s", arguments, quote_literal_cstr(guards.argument));
}

// Checked before the table is locked.
static bool has_insert_trigger(Oid relid, const char* column) {
    Relation rel = open_own_table(relid, AccessShareLock);
    bool found = find_trigger(rel, kInsertTrigger.function, column) != nullptr;
    relation_close(rel, AccessShareLock);
    return found;
}

static TriggerCommand create_trigger(Relation rel, const TriggerKind& kind, const char* event,
                                     const char* column, const char* condition,
                                     const char* more_arguments) {
    const char* name = column_trigger_name(rel, kind.prefix, kind.function, column);
    return {name, psprintf("CREATE OR REPLACE TRIGGER %s %s ON %s FOR EACH ROW %s"
                           "EXECUTE FUNCTION %s(%s%s)",
                           quote_identifier(name), event, qualified_name(rel), condition,
                           own_trigger_function_name(kind.function), quote_literal_cstr(column),
                           more_arguments)};
}

} // namespace interlock::transition
