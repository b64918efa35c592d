// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "history/context.h"
#include "history/history.h"
#include "history/table.h"
#include "table/facet.h"

namespace interlock::history {

int history_facet;
int history_table_facet;

constexpr TableFacet kFacets[] = {
    {
        .number = &history_facet,
        .trigger_function = "history_trigger",
        .load_trigger = load_history,
        .mechanism = &kHistoryMechanism,
        .complete = load_ignored_columns,
    },
    {
        .number = &history_table_facet,
        .load_table = load_history_table,
    },
};

extern const Concept kHistoryConcept = {
    .name = "history",
    .define_settings = define_context_setting,
    .sweep = &kHistorySweep,
    .facets = kFacets,
    .facet_count = lengthof(kFacets),
};

} // namespace interlock::history
