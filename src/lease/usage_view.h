// What the view usage shows of leases.
#pragma once

#include "server/usage_report.h"

namespace interlock::lease {

void report_lease_usage(UsageReport* report);

} // namespace interlock::lease
