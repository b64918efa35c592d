// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "marker/marker.h"
#include "marker/sweep.h"
#include "marker/trigger.h"
#include "table/facet.h"

namespace interlock::marker {

int marker_facet;

static void load_marker(TableInfo* info, const Trigger* trigger) {
    Marker* marker = read_marker(info->relid, info->columns, trigger);
    marker->twin = marker_of(info) != nullptr ? marker_of(info)->trigger : nullptr;
    info->facets[marker_facet] = marker;
    info->maintained = bms_add_members(info->maintained, marker->attnums);
}

static void refuse_use(Relation rel, const TableInfo* info, AttrNumber column, ColumnUse use) {
    const Marker* marker = marker_of(info);
    if (use == ColumnUse::kState && marker != nullptr && marker->columns[kStatus].attnum == column)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("column \"%s\" of table \"%s\" is the status of a marker",
                               column_name(info, column), RelationGetRelationName(rel)),
                        errhint("Keep states in a column of their own.")));
}

constexpr TableFacet kFacet = {
    .number = &marker_facet,
    .trigger_function = "marker_trigger",
    .load_trigger = load_marker,
    .mechanism = &kMarkerMechanism,
    .check = check_marker,
    .refuse_use = refuse_use,
};

extern const Concept kMarkerConcept = {
    .name = "marker",
    .define_settings = define_marker_settings,
    .sweep = &kMarkerSweep,
    .facets = &kFacet,
    .facet_count = 1,
};

} // namespace interlock::marker
