// What the view usage shows of leases.
#pragma once

#include "server/usage_report.h"

namespace interlock {

void report_lease_usage(UsageReport* report);

} // namespace interlock
