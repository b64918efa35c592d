// Reading the rules from the trigger's arguments.

#include "ownership/ownership.h"

#include "table/facet.h"
#include "table/last_word.h"
#include "table/mechanism.h"

namespace interlock::ownership {

const char* on_violation_name(OnViolation on_violation) {
    return on_violation == OnViolation::kReject ? "reject" : "skip";
}

const char* strategy_name(Strategy strategy) {
    switch (strategy) {
    case Strategy::kRetry:
        return "retry";
    case Strategy::kSkip:
        return "skip";
    case Strategy::kMerge:
        return "merge";
    }
    pg_unreachable();
}

static bool parse_group(const char* value, int* group) {
    char* end;
    long number = strtol(value, &end, 10);
    *group = static_cast<int>(number);
    return *end == '\0' && number > 0 && number <= MaxHeapAttributeNumber;
}

static const char* owned_kind(OnViolation on_violation, bool once_changed) {
    return psprintf("%s:%s", once_changed ? "once" : "own", on_violation_name(on_violation));
}

// Reads one triple's kind and value into the rule of its column.
static bool parse_rule(const char* kind, const char* value, ColumnRule* rule) {
    if (strcmp(kind, "group") == 0)
        return parse_group(value, &rule->group);
    if (strcmp(kind, "blind") == 0)
        return parse_blind_updates(value, &rule->blind_updates);
    if (rule->access != Access::kFree)
        return false;
    for (OnViolation on_violation : {OnViolation::kReject, OnViolation::kSkip})
        for (bool once_changed : {false, true})
            if (strcmp(kind, owned_kind(on_violation, once_changed)) == 0) {
                rule->access = Access::kOwned;
                rule->on_violation = on_violation;
                rule->once_changed = once_changed;
                rule->writer = value;
                return true;
            }
    for (Strategy strategy : {Strategy::kRetry, Strategy::kSkip, Strategy::kMerge})
        if (strncmp(kind, "share:", 6) == 0 && strcmp(kind + 6, strategy_name(strategy)) == 0) {
            rule->access = Access::kShared;
            rule->strategy = strategy;
            return true;
        }
    return false;
}

static ColumnRule* rule_named(ColumnRules* rules, const char* name) {
    for (int i = 0; i < rules->count; i++)
        if (strcmp(rules->rules[i].name, name) == 0)
            return &rules->rules[i];
    ColumnRule* rule = &rules->rules[rules->count++];
    rule->name = name;
    return rule;
}

bool is_value_writers(Form_pg_attribute column) {
    return column->atttypid == JSONBOID && column->attgenerated == '\0';
}

bool read_rules(const Trigger* trigger, ColumnRules* rules) {
    NameList arguments = arguments_from(trigger, 0);
    int count = arguments.count;
    *rules = {static_cast<ColumnRule*>(palloc0(sizeof(ColumnRule) * (count / 3 + 1))), 0};
    if (count == 0 || count % 3 != 0)
        return false;
    for (int i = 0; i < count; i += 3)
        if (!parse_rule(arguments[i + 1], arguments[i + 2], rule_named(rules, arguments[i])))
            return false;
    return has_arguments(trigger, trigger_arguments(*rules));
}

static List* add_triple(List* arguments, const char* column, const char* kind, const char* value) {
    return add_argument(add_argument(add_argument(arguments, column), kind), value);
}

List* trigger_arguments(const ColumnRules& rules) {
    List* all = NIL;
    for (int i = 0; i < rules.count; i++) {
        const ColumnRule& rule = rules.rules[i];
        if (rule.access == Access::kOwned)
            all = add_triple(all, rule.name, owned_kind(rule.on_violation, rule.once_changed),
                             rule.writer);
        else if (rule.access == Access::kShared)
            all =
                add_triple(all, rule.name, psprintf("share:%s", strategy_name(rule.strategy)), "");
        if (rule.group > 0)
            all = add_triple(all, rule.name, "group", psprintf("%d", rule.group));
        if (rule.blind_updates != BlindUpdates::kAllow)
            all = add_triple(all, rule.name, "blind", blind_updates_name(rule.blind_updates));
    }
    return all;
}

static void find_columns(Ownership* ownership, TupleDesc columns) {
    for (int i = 0; i < ownership->rules.count; i++) {
        CHECK_FOR_INTERRUPTS();
        ColumnRule* rule = &ownership->rules.rules[i];
        rule->column = find_attribute(columns, rule->name);
        if (rule->column != InvalidAttrNumber &&
            TupleDescAttr(columns, rule->column - 1)->attgenerated != '\0')
            rule->column = InvalidAttrNumber;
        if (rule->column == InvalidAttrNumber && rule->access == Access::kOwned)
            ownership->gone = rule;
    }
}

static void find_value_writers(TableInfo* info, Ownership* ownership) {
    for (int i = 0; i < ownership->rules.count; i++)
        ownership->has_value_writers |= ownership->rules.rules[i].once_changed;
    AttrNumber column = find_attribute(info->columns, kValueWriters);
    if (!ownership->has_value_writers || column == InvalidAttrNumber ||
        !is_value_writers(TupleDescAttr(info->columns, column - 1)))
        return;
    ownership->value_writers = column;
    info->maintained = bms_add_member(info->maintained, column);
}

void load_ownership(TableInfo* info, const Trigger* trigger) {
    auto* ownership = add_facet<Ownership>(info, ownership_facet, trigger);
    ownership->well_formed = read_rules(trigger, &ownership->rules);
    find_columns(ownership, info->columns);
    find_value_writers(info, ownership);
}

void check_owned_columns(TableInfo* info) {
    auto* ownership = facet_of<Ownership>(info, ownership_facet);
    if (ownership == nullptr)
        return;
    ownership->last_checked = ownership->value_writers;
    ownership->checked = static_cast<const ColumnRule**>(
        palloc0(sizeof(ColumnRule*) * (ownership->rules.count + 1)));
    for (int i = 0; i < ownership->rules.count; i++) {
        const ColumnRule* rule = &ownership->rules.rules[i];
        if (rule->access != Access::kOwned || rule->column == InvalidAttrNumber ||
            bms_is_member(rule->column, info->maintained))
            continue;
        ownership->checked[ownership->checked_count++] = rule;
        ownership->last_checked = Max(ownership->last_checked, rule->column);
    }
}

[[noreturn]] static void raise_gone(const ColumnRule& rule, Oid table) {
    const char* way_back = rule.once_changed
                               ? "To keep the writers of its values, rename the column back. To "
                                 "release the values, declare"
                               : "Declare";
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("column \"%s\" of table \"%s\", which has rules, is gone or generated",
                           rule.name, get_rel_name(table)),
                    errhint("%s the rules for the column's current name, after SELECT "
                            "interlock.release_columns(%s, ARRAY[%s]);",
                            way_back, quote_literal_cstr(qualified_name(table)),
                            quote_literal_cstr(rule.name))));
}

const Ownership* usable_ownership(Relation rel, const TableInfo* info) {
    const Ownership* ownership = ownership_of(info);
    require_own(rel, info, ownership, "own_columns");
    if (ownership->gone != nullptr)
        raise_gone(*ownership->gone, RelationGetRelid(rel));
    if (ownership->has_value_writers && ownership->value_writers == InvalidAttrNumber)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("column \"%s\" of table \"%s\" is gone or has another type",
                               kValueWriters, RelationGetRelationName(rel)),
                        errhint("The table's owner renames or drops the column that has its name, "
                                "and calls interlock.own_columns again, which adds it.")));
    if (ownership->checked_count > 0)
        require_last_word(rel, info, TRIGGER_TYPE_UPDATE);
    return ownership;
}

void raise_merge_of_ignored(Relation rel, const char* column) {
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("column \"%s\" of table \"%s\" cannot be merged and ignored by the version",
                    column, RelationGetRelationName(rel)),
             errdetail("A change that does not move the version would be overwritten."),
             errhint("Leave it out of ignore_columns, or share it with another strategy.")));
}

const ColumnRule* rule_of(const TableInfo* info, AttrNumber column) {
    const Ownership* ownership = ownership_of(info);
    for (int i = 0; ownership != nullptr && i < ownership->rules.count; i++)
        if (ownership->rules.rules[i].column == column)
            return &ownership->rules.rules[i];
    return nullptr;
}

Bitmapset* add_groups(const TableInfo* info, const Bitmapset* columns) {
    const Ownership* ownership = ownership_of(info);
    Bitmapset* groups = nullptr;
    auto each_grouped = [&](auto&& visit) {
        for (int i = 0; ownership != nullptr && i < ownership->rules.count; i++)
            if (ownership->rules.rules[i].group > 0)
                visit(ownership->rules.rules[i]);
    };
    each_grouped([&](const ColumnRule& rule) {
        if (bms_is_member(rule.column, columns))
            groups = bms_add_member(groups, rule.group);
    });
    Bitmapset* all = bms_copy(columns);
    each_grouped([&](const ColumnRule& rule) {
        if (!bms_is_member(rule.group, groups))
            return;
        if (rule.column == InvalidAttrNumber)
            raise_gone(rule, info->relid);
        all = bms_add_member(all, rule.column);
    });
    return all;
}

} // namespace interlock::ownership
