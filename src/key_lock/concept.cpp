// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "key_lock/key_lock.h"
#include "key_lock/name.h"
#include "server/usage_report.h"

namespace interlock::key_lock {

static void report_usage(UsageReport* report) {
    NamesUse names = names_use();
    if (names.usage == nullptr)
        return;
    report_total(report, "key names", names.used, names.most);
    report_roles(report, "key names", names.usage, 1, names.share);
    int resource = add_resource(report, "key names");
    for_each_name_use([report, resource](Oid role, Oid database) {
        count_use(report, resource, role, database, 1);
    });
}

extern const Concept kKeyLockConcept = {
    .name = "key_lock",
    .define_settings = define_key_lock_settings,
    .preload = preload_key_names,
    .report_usage = report_usage,
};

} // namespace interlock::key_lock
