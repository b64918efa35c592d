// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "escrow/fold.h"
#include "escrow/journal.h"
#include "escrow/memory.h"
#include "table/facet.h"

namespace interlock::escrow {

int escrow_facet;

static void refuse_use(Relation rel, const TableInfo* info, AttrNumber column, ColumnUse) {
    if (escrow_of(info, column) != nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("column \"%s\" of table \"%s\" has escrow counters",
                               column_name(info, column), RelationGetRelationName(rel)),
                        errhint("Change it with interlock.adjust or interlock.set_escrow.")));
}

static void forget_rows() {
    drop_entries_of(MyDatabaseId);
    forget_part_numbers();
}

constexpr TableFacet kFacet = {
    .number = &escrow_facet,
    .trigger_function = "escrow_trigger",
    .load_trigger = load_escrow,
    .mechanism = &kEscrowMechanism,
    .refuse_use = refuse_use,
};

extern const Concept kEscrowConcept = {
    .name = "escrow",
    .preload = preload_escrow,
    .sweep = &kEscrowSweep,
    .report_usage = report_escrow_usage,
    .forget_rows = forget_rows,
    .facets = &kFacet,
    .facet_count = 1,
};

} // namespace interlock::escrow
