// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "server/usage_report.h"
#include "sweeper/deadline.h"
#include "sweeper/launcher.h"
#include "sweeper/state.h"
#include "sweeper/sweeper.h"

namespace interlock::inline sweeper {

static void preload() {
    request_sweeper_memory();
    report_deadlines();
    register_launcher();
}

static void report_usage(UsageReport* report) {
    if (sweeper_memory_is_there())
        report_total(report, "sweeper databases", hash_get_num_entries(sweeper_databases()),
                     kMaxDatabases);
}

extern const Concept kSweeperConcept = {
    .name = "sweeper",
    .define_settings = define_sweeper_settings,
    .preload = preload,
    .report_usage = report_usage,
};

} // namespace interlock::inline sweeper
