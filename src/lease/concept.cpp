// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "lease/lease.h"
#include "lease/report.h"
#include "lease/service.h"
#include "lease/usage.h"

namespace interlock {

namespace {

void define_settings() {
    define_lease_settings();
    define_lease_usage_settings();
}

} // namespace

extern const Concept kLeaseConcept = {
    .name = "lease",
    .define_settings = define_settings,
    .preload = preload_leases,
    .launcher_starts = begin_lease_service,
    .report_usage = report_lease_usage,
};

} // namespace interlock
