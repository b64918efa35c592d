#include "transition/errors.h"

#include "server/error.h"
#include "table/column.h"
#include "transition/guard.h"
#include "transition/unknown_state.h"

namespace interlock::transition {

static const char* shown_state(const char* state) {
    return state != nullptr ? psprintf("\"%s\"", state) : "null";
}

static char* refusal(Relation rel, const char* column, const RefusedMove& move) {
    const char* table = RelationGetRelationName(rel);
    if (move.is_new)
        return move.tells_states ? psprintf("\"%s\" of a new row in table \"%s\" cannot be %s",
                                            column, table, shown_state(move.to))
                                 : psprintf(
                                       "\"%s\" of a new row in table \"%s\" cannot be this "
                                       "state",
                                       column, table);
    return move.tells_states
               ? psprintf("\"%s\" in table \"%s\" cannot go from %s to %s", column, table,
                          shown_state(move.from), shown_state(move.to))
               : psprintf("\"%s\" in table \"%s\" cannot go to this state", column, table);
}

static char* detail_of(Relation rel, const StateMachine* machine, const RefusedMove& move) {
    bool tells = move.tells_states;
    char* detail =
        json_object({{"table", shown_name(rel)},
                     {"key", nullptr, move.key},
                     {"column", NameStr(machine->name)},
                     {"from", tells ? move.from : nullptr},
                     {"to", tells ? move.to : nullptr},
                     {"allowed", nullptr, tells ? allowed_json(machine, move.from) : nullptr}});
    if (move.guard == nullptr)
        return detail;
    detail[strlen(detail) - 1] = '\0';
    char* of_guard = json_object(
        {{"guard", format_procedure_qualified(move.guard->function)}, {"reason", move.objection}});
    return psprintf("%s, %s", detail, of_guard + 1);
}

void raise_not_allowed(Relation rel, const StateMachine* machine, const RefusedMove& move) {
    const char* message = refusal(rel, NameStr(machine->name), move);
    bool guarded = move.guard != nullptr;
    const char* way_back = guarded ? nullptr : way_back_of_states(rel, machine);
    ereport(ERROR,
            (errcode(kTransitionNotAllowed),
             guarded ? errmsg_internal("%s: %s", message, move.objection)
                     : errmsg_internal("%s", message),
             errdetail_internal("%s", detail_of(rel, machine, move)),
             way_back != nullptr
                 ? errhint("%s", way_back)
                 : errhint("The table's owner declares %s with interlock.define_transitions.",
                           guarded ? "guards" : "transitions")));
}

void refuse_state(Relation rel, const TableInfo* info, const StateMachine* machine, HeapTuple row,
                  RefusedMove move, bool counts_call) {
    LineRef line = line_of(info, CountedKind::kTransitions);
    if (counts_call)
        count(line, Counter::kCalls);
    count(line, Counter::kRefusals);
    const Bitmapset* readable = readable_columns(rel, row);
    move.key = readable_key(info, readable, row);
    move.tells_states = bms_is_member(machine->column, readable);
    raise_not_allowed(rel, machine, move);
}

// As they were given: "a", or ["a", "b"].
static char* states_as_json(const Mismatch& found) {
    StringInfoData json;
    initStringInfo(&json);
    ListCell* cell;
    foreach (cell, found.from) {
        appendStringInfoString(&json, json.len > 0 ? ", " : found.is_array ? "[" : "");
        escape_json(&json, static_cast<const char*>(lfirst(cell)));
    }
    if (found.is_array)
        appendStringInfoChar(&json, ']');
    return json.data;
}

// "a", "b" or "c"
static char* states_in_words(const List* states) {
    StringInfoData words;
    initStringInfo(&words);
    int last = list_length(states) - 1;
    ListCell* cell;
    foreach (cell, states) {
        int i = foreach_current_index(cell);
        appendStringInfo(&words, "%s\"%s\"",
                         i == 0      ? ""
                         : i == last ? " or "
                                     : ", ",
                         static_cast<const char*>(lfirst(cell)));
    }
    return words.data;
}

void raise_state_changed(const Mismatch& found) {
    const char* column = NameStr(found.machine->name);
    ereport(ERROR,
            (errcode(kStateChanged),
             errmsg("state of the row in table \"%s\" is %s, not %s",
                    RelationGetRelationName(found.rel), shown_state(found.state),
                    states_in_words(found.from)),
             errdetail_internal("%s", json_object({{"table", shown_name(found.rel)},
                                                   {"key", nullptr, found.key},
                                                   {"column", column},
                                                   {"expected", nullptr, states_as_json(found)},
                                                   {"state", found.state}})),
             errhint("Another transaction changed it first: read the row and decide again.")));
}

void raise_no_match(const Mismatch& found, const Bitmapset* differences) {
    const char* column = NameStr(found.machine->name);
    const char* differ = column_names_json(found.info->columns, differences);
    ereport(ERROR,
            (errcode(kStateChanged),
             errmsg("row in table \"%s\" does not match: column \"%s\" has another value",
                    RelationGetRelationName(found.rel),
                    column_name(found.info, bms_next_member(differences, -1))),
             errdetail_internal("%s", json_object({{"table", shown_name(found.rel)},
                                                   {"key", nullptr, found.key},
                                                   {"column", column},
                                                   {"expected", nullptr, states_as_json(found)},
                                                   {"state", found.state},
                                                   {"differ", nullptr, differ}})),
             errhint("Read the row and decide again.")));
}

} // namespace interlock::transition
