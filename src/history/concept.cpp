// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "history/history.h"
#include "history/table.h"
#include "table/part.h"

namespace interlock::history {

int history_part;
int history_table_part;

constexpr TablePart kParts[] = {
    {
        .number = &history_part,
        .trigger_function = "history_trigger",
        .load_trigger = load_history,
        .mechanism = &kHistoryMechanism,
        .complete = load_ignored_columns,
    },
    {
        .number = &history_table_part,
        .load_table = load_history_table,
    },
};

extern const Concept kHistoryConcept = {
    .name = "history",
    .sweep = &kHistorySweep,
    .parts = kParts,
    .part_count = lengthof(kParts),
};

} // namespace interlock::history
