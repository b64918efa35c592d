// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "ownership/ownership.h"
#include "table/facet.h"
#include "version/blind.h"
#include "version/blind_count.h"
#include "version/trigger.h"
#include "version/version.h"

namespace interlock::version {

int versioning_facet;

static void find_column(TableInfo* info, Versioning* versioning) {
    AttrNumber column = find_attribute(info->columns, NameStr(versioning->name));
    if (column == InvalidAttrNumber)
        return;
    Form_pg_attribute attribute = TupleDescAttr(info->columns, column - 1);
    if (token_kind_of(attribute->atttypid, &versioning->kind)) {
        versioning->column = column;
        info->maintained = bms_add_member(info->maintained, column);
    }
    versioning->typmod = attribute->atttypmod;
    versioning->nullable = !has_no_nulls(info->columns, column);
}

static void load_versioning(TableInfo* info, const Trigger* trigger) {
    auto* versioning = add_facet<Versioning>(info, versioning_facet, trigger);
    VersionSettings settings;
    versioning->well_formed = read_settings(trigger, &settings);
    if (!versioning->well_formed)
        return;
    namestrcpy(&versioning->name, settings.column);
    versioning->blind_updates = settings.blind_updates;
    versioning->keeps_unchanged = settings.keeps_unchanged;
    find_column(info, versioning);
    for (const char* name : settings.ignored) {
        AttrNumber ignored = find_attribute(info->columns, name);
        if (ignored != InvalidAttrNumber)
            versioning->ignored = bms_add_member(versioning->ignored, ignored);
    }
}

// Columns that our other triggers set are not content of the row.
static void ignore_maintained_columns(TableInfo* info) {
    auto* versioning = facet_of<Versioning>(info, versioning_facet);
    if (versioning == nullptr)
        return;
    Bitmapset* others = bms_copy(info->maintained);
    others = bms_del_member(others, versioning->column);
    versioning->ignored = bms_add_members(versioning->ignored, others);
    versioning->has_ignored = !bms_is_empty(versioning->ignored);
}

// A change that does not move the version would be overwritten.
static void refuse_use(Relation rel, const TableInfo* info, AttrNumber column, ColumnUse use) {
    const Versioning* versioning = versioning_of(info);
    if (use == ColumnUse::kCompared)
        require_versioning(rel, info);
    if (use == ColumnUse::kMerged && versioning != nullptr &&
        bms_is_member(column, versioning->ignored))
        ownership::raise_merge_of_ignored(rel, column_name(info, column));
}

static void define_settings() {
    define_blind_settings();
    define_blind_window();
}

static void preload() { request_blind_counts(); }

constexpr TableFacet kFacet = {
    .number = &versioning_facet,
    .trigger_function = "version_trigger",
    .load_trigger = load_versioning,
    .mechanism = &kVersionMechanism,
    .complete = ignore_maintained_columns,
    .check = check_version,
    .refuse_use = refuse_use,
};

extern const Concept kVersionConcept = {
    .name = "version",
    .define_settings = define_settings,
    .preload = preload,
    .report_usage = report_blind_counts,
    .facets = &kFacet,
    .facet_count = 1,
};

} // namespace interlock::version
