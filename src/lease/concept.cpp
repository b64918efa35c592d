// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "lease/database.h"
#include "lease/lease.h"
#include "lease/notify.h"
#include "lease/require.h"
#include "lease/role_share.h"
#include "lease/usage_view.h"
#include "table/facet.h"

namespace interlock::lease {

int requirements_facet;

static void add_requirement(TableInfo* info, const Trigger* trigger) {
    *add_item<LeaseRequirement>(info, requirements_facet) = load_requirement(info, trigger);
}

constexpr TableFacet kFacet = {
    .number = &requirements_facet,
    .trigger_function = "lease_trigger",
    .load_trigger = add_requirement,
    .mechanism = &kLeaseMechanism,
};

static void define_settings() {
    define_lease_settings();
    define_lease_usage_settings();
}

extern const Concept kLeaseConcept = {
    .name = "lease",
    .define_settings = define_settings,
    .preload = preload_leases,
    .launcher_starts = begin_lease_service,
    .sweep = &kTicketTask,
    .report_usage = report_lease_usage,
    .facets = &kFacet,
    .facet_count = 1,
};

} // namespace interlock::lease
