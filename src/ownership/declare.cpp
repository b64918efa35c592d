// Declaring the writers of columns: checks the declaration of the table's owner and stores it as
// the arguments of a trigger.

#include "ownership/ownership.h"

#include "ownership/value_writers.h"
#include "ownership/writer.h"
#include "server/arguments.h"
#include "server/scope.h"
#include "table/configuration_audit.h"
#include "table/facet.h"
#include "table/last_word.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "table/trigger_state.h"

namespace interlock::ownership {

constexpr const char* kTriggerName = "zzz_interlock_columns";

namespace {

// The rules of a table while a function changes them.
struct Draft {
    Relation rel;
    const TableInfo* info;
    NameList columns; // the argument of the call
    ColumnRules rules;
    TableChange change;
    bool adds_value_writers;
    List* new_once; // columns that become owned once changed, if value_writers exists
};

} // namespace

static Draft open_draft(const Arguments& arguments, int n, LOCKMODE mode);
static void check_columns(const Draft& draft);
static bool lacks_value_writers(const Draft& draft);
static ColumnRule* named_rule(Draft* draft, int i);
static ColumnRule* present_rule(Draft* draft, int i);
static void refuse_later_trigger(const Draft& draft);
static void require_use(const Draft& draft, ColumnUse use);
static OnViolation on_violation_argument(const Arguments& arguments, int n);
static Strategy strategy_argument(const Arguments& arguments, int n);
[[noreturn]] static void raise_owned(const Draft& draft, const ColumnRule* rule, const char* hint);
[[noreturn]] static void raise_not_ruled(const Draft& draft, const char* column, const char* what);
static char* call_of(const char* function, const Draft& draft, const char* column);
static int new_group(Draft* draft);
static void end_single_groups(ColumnRules* rules);
static void save_draft(const Draft& draft);

extern "C" {
PG_FUNCTION_INFO_V1(own_columns);
PG_FUNCTION_INFO_V1(share_columns);
PG_FUNCTION_INFO_V1(release_columns);
PG_FUNCTION_INFO_V1(hand_over_columns);
PG_FUNCTION_INFO_V1(group_columns);
PG_FUNCTION_INFO_V1(ungroup_columns);

// own_columns(rel, writer, columns, on_violation, once_changed)
Datum own_columns(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    const char* writer = check_writer(arguments.string(1, "writer"));
    OnViolation on_violation = on_violation_argument(arguments, 3);
    bool once_changed = arguments.boolean(4, "once_changed");
    // Adding the column takes the strongest lock; upgrading to it later could deadlock.
    Draft draft =
        open_draft(arguments, 2, once_changed ? AccessExclusiveLock : ShareRowExclusiveLock);
    // The servers of the shards do not know the writer that a session has set on this one.
    if (on_violation == OnViolation::kSkip && draft.info->distribution != Distribution::kNone)
        refuse_distributed(draft.rel, "own_columns with on_violation skip",
                           "Use on_violation => 'reject', which raises an error instead.");
    check_columns(draft);
    draft.adds_value_writers = once_changed && lacks_value_writers(draft);
    refuse_later_trigger(draft);
    for (int i = 0; i < draft.columns.count; i++) {
        ColumnRule* rule = named_rule(&draft, i);
        if (rule->access == Access::kShared)
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("column \"%s\" of table \"%s\" is shared", rule->name,
                                   RelationGetRelationName(draft.rel)),
                            errhint("Release it first: %s",
                                    call_of("release_columns", draft, rule->name))));
        if (rule->access == Access::kOwned && strcmp(rule->writer, writer) != 0)
            raise_owned(draft, rule,
                        psprintf("SELECT interlock.hand_over_columns(%s, ARRAY[%s], %s);",
                                 quote_literal_cstr(qualified_name(draft.rel)),
                                 quote_literal_cstr(rule->name), quote_literal_cstr(writer)));
        if (once_changed && !draft.adds_value_writers && !rule->once_changed)
            draft.new_once = lappend(draft.new_once, pstrdup(rule->name));
        rule->access = Access::kOwned;
        rule->writer = writer;
        rule->on_violation = on_violation;
        rule->once_changed = once_changed;
    }
    save_draft(draft);
    warn_if_ungranted(writer);
    PG_RETURN_VOID();
}

// share_columns(rel, columns, strategy, blind_updates)
Datum share_columns(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Strategy strategy = strategy_argument(arguments, 2);
    BlindUpdates blind_updates = blind_updates_argument(arguments, 3);
    Draft draft = open_draft(arguments, 1, ShareRowExclusiveLock);
    check_columns(draft);
    if (strategy == Strategy::kMerge)
        require_use(draft, ColumnUse::kMerged);
    if (blind_updates != BlindUpdates::kAllow)
        require_use(draft, ColumnUse::kCompared);
    for (int i = 0; i < draft.columns.count; i++) {
        ColumnRule* rule = named_rule(&draft, i);
        if (rule->access == Access::kOwned)
            raise_owned(
                draft, rule,
                psprintf("Release it first: %s", call_of("release_columns", draft, rule->name)));
        rule->access = Access::kShared;
        rule->strategy = strategy;
        rule->blind_updates = blind_updates;
    }
    save_draft(draft);
    PG_RETURN_VOID();
}

// release_columns(rel, columns). All rules of a dropped column are removed: only under this name
// can they be.
Datum release_columns(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    // Dropping the trigger with the last rule takes the strongest lock; upgrading to it later could
    // deadlock.
    Draft draft = open_draft(arguments, 1, AccessExclusiveLock);
    for (int i = 0; i < draft.columns.count; i++) {
        ColumnRule* rule = present_rule(&draft, i);
        bool is_gone = rule != nullptr && rule->column == InvalidAttrNumber;
        if (rule == nullptr || (rule->access == Access::kFree && !is_gone))
            raise_not_ruled(draft, draft.columns[i], "is neither owned nor shared");
        rule->access = Access::kFree;
        rule->once_changed = false;
        rule->blind_updates = BlindUpdates::kAllow;
        if (is_gone)
            rule->group = 0;
    }
    end_single_groups(&draft.rules);
    save_draft(draft);
    PG_RETURN_VOID();
}

// hand_over_columns(rel, columns, to_writer)
Datum hand_over_columns(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    const char* writer = check_writer(arguments.string(2, "to_writer"));
    Draft draft = open_draft(arguments, 1, ShareRowExclusiveLock);
    check_columns(draft);
    for (int i = 0; i < draft.columns.count; i++) {
        ColumnRule* rule = present_rule(&draft, i);
        if (rule == nullptr || rule->access != Access::kOwned)
            raise_not_ruled(draft, draft.columns[i], "is not owned");
        rule->writer = writer;
    }
    save_draft(draft);
    warn_if_ungranted(writer);
    PG_RETURN_VOID();
}

// group_columns(rel, columns)
Datum group_columns(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Draft draft = open_draft(arguments, 1, ShareRowExclusiveLock);
    check_columns(draft);
    if (draft.columns.count < 2)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("a group needs at least two columns")));
    int group = new_group(&draft);
    for (int i = 0; i < draft.columns.count; i++)
        named_rule(&draft, i)->group = group;
    save_draft(draft);
    PG_RETURN_VOID();
}

// ungroup_columns(rel, columns)
Datum ungroup_columns(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Draft draft = open_draft(arguments, 1, AccessExclusiveLock);
    for (int i = 0; i < draft.columns.count; i++) {
        ColumnRule* rule = present_rule(&draft, i);
        if (rule == nullptr || rule->group == 0)
            raise_not_ruled(draft, draft.columns[i], "is in no group");
        rule->group = 0;
    }
    end_single_groups(&draft.rules);
    save_draft(draft);
    PG_RETURN_VOID();
}
}

static NameList columns_argument(const Arguments& arguments, int n) {
    NameList columns = arguments.names(n, "columns");
    if (columns.count == 0)
        refuse_empty("columns");
    for (int i = 0; i < columns.count; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(columns[i], columns[j]) == 0)
                ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                                errmsg("column \"%s\" is named twice", columns[i])));
    return columns;
}

static Draft open_draft(const Arguments& arguments, int n, LOCKMODE mode) {
    Draft draft = {};
    draft.columns = columns_argument(arguments, n);
    draft.rel = open_own_table(arguments.relation(0), mode);
    draft.info = table_info(draft.rel);
    draft.change = begin_change(arguments, draft.rel);
    const Ownership* present = ownership_of(draft.info);
    int count = present != nullptr ? present->rules.count : 0;
    if (present != nullptr) {
        refuse_partition(draft.rel, present->is_clone);
        if (!present->well_formed)
            raise_forged(draft.rel, present->trigger, "own_columns");
    }
    draft.rules.rules =
        static_cast<ColumnRule*>(palloc0(sizeof(ColumnRule) * (count + draft.columns.count)));
    draft.rules.count = count;
    if (count > 0)
        memcpy(draft.rules.rules, present->rules.rules, sizeof(ColumnRule) * count);
    return draft;
}

static void check_columns(const Draft& draft) {
    const char* table = RelationGetRelationName(draft.rel);
    for (int i = 0; i < draft.columns.count; i++) {
        const char* name = draft.columns[i];
        AttrNumber column = column_number(draft.rel, name);
        if (TupleDescAttr(draft.info->columns, column - 1)->attgenerated != '\0')
            ereport(ERROR, (errcode(ERRCODE_GENERATED_ALWAYS),
                            errmsg("generated column \"%s\" of table \"%s\" can have no writer",
                                   name, table),
                            errhint("Name the columns that it is computed from.")));
        interlock::require_use(draft.rel, draft.info, column, ColumnUse::kOwned);
        if (bms_is_member(column, draft.info->maintained))
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                            errmsg("column \"%s\" of table \"%s\" can have no writer: it is a "
                                   "version or part of a marker",
                                   name, table)));
    }
}

static bool lacks_value_writers(const Draft& draft) {
    AttrNumber column = find_attribute(draft.info->columns, kValueWriters);
    if (column == InvalidAttrNumber)
        return true;
    Form_pg_attribute attribute = TupleDescAttr(draft.info->columns, column - 1);
    if (!is_value_writers(attribute))
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("column \"%s\" of table \"%s\" cannot have the writers of values: "
                               "its type is %s",
                               kValueWriters, RelationGetRelationName(draft.rel),
                               format_type_be(attribute->atttypid)),
                        errhint("Rename it. own_columns adds a column of type jsonb.")));
    return false;
}

// The rule of the i-th column of the call, or null.
static ColumnRule* present_rule(Draft* draft, int i) {
    for (int j = 0; j < draft->rules.count; j++)
        if (strcmp(draft->rules.rules[j].name, draft->columns[i]) == 0)
            return &draft->rules.rules[j];
    return nullptr;
}

// The rule of the i-th column, which may be a new one.
static ColumnRule* named_rule(Draft* draft, int i) {
    ColumnRule* rule = present_rule(draft, i);
    if (rule == nullptr) {
        rule = &draft->rules.rules[draft->rules.count++];
        rule->name = draft->columns[i];
    }
    return rule;
}

static void refuse_later_trigger(const Draft& draft) {
    const Ownership* present = ownership_of(draft.info);
    require_last_word_of(draft.rel, present != nullptr ? present->trigger : kTriggerName,
                         TRIGGER_TYPE_UPDATE);
}

static void require_use(const Draft& draft, ColumnUse use) {
    for (int i = 0; i < draft.columns.count; i++)
        interlock::require_use(draft.rel, draft.info, column_number(draft.rel, draft.columns[i]),
                               use);
}

static OnViolation on_violation_argument(const Arguments& arguments, int n) {
    const char* value = arguments.string(n, "on_violation");
    for (OnViolation on_violation : {OnViolation::kReject, OnViolation::kSkip})
        if (strcmp(value, on_violation_name(on_violation)) == 0)
            return on_violation;
    refuse_value("on_violation", value, "Use 'reject' or 'skip'.");
}

static Strategy strategy_argument(const Arguments& arguments, int n) {
    const char* value = arguments.string(n, "strategy");
    for (Strategy strategy : {Strategy::kRetry, Strategy::kSkip, Strategy::kMerge})
        if (strcmp(value, strategy_name(strategy)) == 0)
            return strategy;
    refuse_value("strategy", value, "Use 'retry', 'skip' or 'merge'.");
}

static void raise_owned(const Draft& draft, const ColumnRule* rule, const char* hint) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("column \"%s\" of table \"%s\" belongs to writer \"%s\"", rule->name,
                           RelationGetRelationName(draft.rel), rule->writer),
                    errhint("%s", hint)));
}

static void raise_not_ruled(const Draft& draft, const char* column, const char* what) {
    column_number(draft.rel, column);
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("column \"%s\" of table \"%s\" %s", column,
                           RelationGetRelationName(draft.rel), what),
                    errhint("The view interlock.column_ownership lists the rules.")));
}

// The statement that calls a function for one column.
static char* call_of(const char* function, const Draft& draft, const char* column) {
    return psprintf("SELECT interlock.%s(%s, ARRAY[%s]);", function,
                    quote_literal_cstr(qualified_name(draft.rel)), quote_literal_cstr(column));
}

static bool is_named(const Draft& draft, const char* column) {
    for (int i = 0; i < draft.columns.count; i++)
        if (strcmp(draft.columns[i], column) == 0)
            return true;
    return false;
}

// The number for a group of the named columns. Groups that they were in must be part of it.
static int new_group(Draft* draft) {
    Bitmapset* taken = nullptr;
    Bitmapset* replaced = nullptr;
    for (int i = 0; i < draft->columns.count; i++) {
        const ColumnRule* rule = present_rule(draft, i);
        if (rule != nullptr && rule->group > 0)
            replaced = bms_add_member(replaced, rule->group);
    }
    for (int i = 0; i < draft->rules.count; i++) {
        const ColumnRule& rule = draft->rules.rules[i];
        taken = bms_add_member(taken, rule.group);
        if (rule.group > 0 && bms_is_member(rule.group, replaced) && !is_named(*draft, rule.name))
            ereport(ERROR,
                    (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                     errmsg("column \"%s\" of table \"%s\" is in a group with one of these columns",
                            rule.name, RelationGetRelationName(draft->rel)),
                     errhint("Name it too, or take it out first: %s",
                             call_of("ungroup_columns", *draft, rule.name))));
    }
    if (!bms_is_empty(replaced))
        return bms_next_member(replaced, -1);
    int group = 1;
    while (bms_is_member(group, taken))
        group++;
    return group;
}

// A column is not in a group with itself.
static void end_single_groups(ColumnRules* rules) {
    for (int i = 0; i < rules->count; i++) {
        int members = 0;
        for (int j = 0; j < rules->count; j++)
            members += rules->rules[j].group == rules->rules[i].group ? 1 : 0;
        if (members == 1)
            rules->rules[i].group = 0;
    }
}

// Writes the rules down, or drops the trigger if there are none, and closes the table.
static void save_draft(const Draft& draft) {
    const Ownership* present = ownership_of(draft.info);
    const char* name = present != nullptr ? present->trigger : kTriggerName;
    if (present == nullptr)
        refuse_taken_trigger(draft.rel, name, "field ownership");
    char* rules = arguments_sql(trigger_arguments(draft.rules));
    char* table = qualified_name(draft.rel);
    char* command = rules[0] == '\0'
                        ? psprintf("DROP TRIGGER %s ON %s", quote_identifier(name), table)
                        : psprintf(
                              "CREATE OR REPLACE TRIGGER %s BEFORE UPDATE ON %s FOR EACH ROW "
                              "EXECUTE FUNCTION %s(%s)",
                              quote_identifier(name), table,
                              own_trigger_function_name("ownership_trigger"), rules);
    Oid relid = RelationGetRelid(draft.rel);
    close_table(draft.rel); // the server refuses to alter a table that is open in this session
    with_spi([&] {
        if (draft.adds_value_writers)
            run_command(psprintf("ALTER TABLE %s ADD COLUMN %s jsonb", table, kValueWriters));
        replace_trigger(relid, name, command);
        ListCell* cell;
        foreach (cell, draft.new_once)
            warn_of_former_writers(relid, static_cast<const char*>(lfirst(cell)));
    });
    record_change(draft.change);
}

} // namespace interlock::ownership
