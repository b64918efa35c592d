#include "table/part.h"

#include "server/concept.h"
#include "table/own_table.h"

namespace interlock::inline table {

// Calls visit(part) for each until it returns true; returns that part.
template <typename Visit>
static const TablePart* find_part(Visit&& visit) {
    for (const Concept* each : concepts())
        for (int i = 0; i < each->part_count; i++)
            if (visit(each->parts[i]))
                return &each->parts[i];
    return nullptr;
}

template <typename Visit>
static void each_part(Visit&& visit) {
    find_part([&](const TablePart& part) {
        visit(part);
        return false;
    });
}

void number_parts() {
    int count = 0;
    each_part([&](const TablePart& part) {
        if (count == kMostParts)
            elog(ERROR, "concepts keep more than %d parts of a table", kMostParts);
        *part.number = count++;
    });
}

const TablePart* part_of_trigger(const Trigger* trigger) {
    char* function = get_func_name(trigger->tgfoid);
    if (function == nullptr)
        return nullptr;
    const TablePart* part = find_part([&](const TablePart& each) {
        return each.trigger_function != nullptr && strcmp(each.trigger_function, function) == 0;
    });
    if (part == nullptr || get_func_namespace(trigger->tgfoid) != internal_schema())
        return nullptr;
    return part;
}

void require_use(Relation rel, const TableInfo* info, AttrNumber column, ColumnUse use) {
    each_part([&](const TablePart& part) {
        if (part.refuse_use != nullptr)
            part.refuse_use(rel, info, column, use);
    });
}

void load_parts(TableInfo* info, Relation rel, const TriggerDesc* triggers) {
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++) {
        CHECK_FOR_INTERRUPTS(); // any role may have made thousands
        const TablePart* part = part_of_trigger(&triggers->triggers[i]);
        if (part != nullptr)
            part->load_trigger(info, &triggers->triggers[i]);
    }
    each_part([&](const TablePart& part) {
        if (part.load_table != nullptr)
            part.load_table(info, rel);
    });
    each_part([&](const TablePart& part) {
        if (part.complete != nullptr)
            part.complete(info);
    });
}

} // namespace interlock::inline table
