#include "table/facet.h"

#include "server/concept.h"
#include "table/own_table.h"

namespace interlock::inline table {

// Calls visit(facet) for each until it returns true; returns that facet.
template <typename Visit>
static const TableFacet* find_facet(Visit&& visit) {
    for (const Concept* each : concepts())
        for (int i = 0; i < each->facet_count; i++)
            if (visit(each->facets[i]))
                return &each->facets[i];
    return nullptr;
}

template <typename Visit>
static void each_facet(Visit&& visit) {
    find_facet([&](const TableFacet& facet) {
        visit(facet);
        return false;
    });
}

void number_facets() {
    int count = 0;
    each_facet([&](const TableFacet& facet) {
        if (count == kMostFacets)
            elog(ERROR, "concepts keep more than %d facets of a table", kMostFacets);
        *facet.number = count++;
    });
}

const TableFacet* facet_of_trigger(const Trigger* trigger) {
    char* function = get_func_name(trigger->tgfoid);
    if (function == nullptr)
        return nullptr;
    const TableFacet* facet = find_facet([&](const TableFacet& each) {
        return each.trigger_function != nullptr && strcmp(each.trigger_function, function) == 0;
    });
    if (facet == nullptr || get_func_namespace(trigger->tgfoid) != internal_schema())
        return nullptr;
    return facet;
}

void require_use(Relation rel, const TableInfo* info, AttrNumber column, ColumnUse use) {
    each_facet([&](const TableFacet& facet) {
        if (facet.refuse_use != nullptr)
            facet.refuse_use(rel, info, column, use);
    });
}

void load_parts(TableInfo* info, Relation rel, const TriggerDesc* triggers) {
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++) {
        CHECK_FOR_INTERRUPTS(); // any role may have made thousands
        const TableFacet* facet = facet_of_trigger(&triggers->triggers[i]);
        if (facet != nullptr)
            facet->load_trigger(info, &triggers->triggers[i]);
    }
    each_facet([&](const TableFacet& facet) {
        if (facet.load_table != nullptr)
            facet.load_table(info, rel);
    });
    each_facet([&](const TableFacet& facet) {
        if (facet.complete != nullptr)
            facet.complete(info);
    });
}

} // namespace interlock::inline table
