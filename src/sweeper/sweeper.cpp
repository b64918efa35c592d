#include "sweeper/sweeper.h"

namespace interlock::inline sweeper {

// Whether expired markers are released by themselves. Off: they still count as free, and sweep()
// releases them without it. Read again at a reload of the configuration.
bool sweeper_enabled = true;

// How many workers may run at once, in all databases together. Each takes one of
// max_worker_processes for about as long as it has something to release.
int sweeper_workers = 2;

// How many rows are released in one subtransaction. Smaller batches hold row locks for a shorter
// time.
int sweep_batch = 1000;

// How often a database that was written to is looked at for markers that came without their
// trigger: by a restore or by logical replication. A database without writes is not searched. Zero:
// never.
int sweeper_rescan = 60;

void define_sweeper_settings() {
    DefineCustomBoolVariable("interlock.sweeper", "Releases expired markers in the background.",
                             nullptr, &sweeper_enabled, true, PGC_SIGHUP, 0, nullptr, nullptr,
                             nullptr);
    DefineCustomIntVariable("interlock.sweeper_workers",
                            "How many databases are swept at the same time.", nullptr,
                            &sweeper_workers, 2, 1, 64, PGC_SIGHUP, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("interlock.sweep_batch", "How many rows are released in one go.",
                            nullptr, &sweep_batch, 1000, 1, 100000, PGC_SIGHUP, 0, nullptr, nullptr,
                            nullptr);
    DefineCustomIntVariable("interlock.sweeper_rescan",
                            "How often written databases are searched for markers that came "
                            "without their trigger.",
                            "Zero turns it off.", &sweeper_rescan, 60, 0, 86400, PGC_SIGHUP,
                            GUC_UNIT_S, nullptr, nullptr, nullptr);
}

} // namespace interlock::inline sweeper
