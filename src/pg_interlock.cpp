// The module: what the server finds and runs when it loads the library.

#include "execution/probe.h"
#include "idempotency/wait.h"
#include "key_lock/key_lock.h"
#include "lease/lease.h"
#include "marker/marker.h"
#include "ownership/write_log.h"
#include "ownership/writer.h"
#include "sweeper/state.h"
#include "sweeper/sweeper.h"
#include "table/plan.h"
#include "table/relation.h"

extern "C" {

INTERLOCK_MODULE_MAGIC;

void _PG_init(void) {
    using namespace interlock;
    define_direct_settings();
    define_marker_settings();
    define_sweeper_settings();
    define_key_lock_settings();
    define_writer_settings();
    define_write_log_settings();
    register_leases();
    if (process_shared_preload_libraries_in_progress) {
        request_sweeper_memory();
        register_sweeper();
        register_key_names();
        register_idempotency_waits();
    }
    MarkGUCPrefixReserved("interlock");
    initialize_relation_cache();
    initialize_plan_cache();
}
}
