// The module: what the server finds and runs when it loads the library. No other file names all
// concepts.

#include "execution/eligible.h"
#include "server/concept.h"
#include "server/library_version.h"
#include "server/wait_log.h"
#include "statement/running.h"
#include "table/plan.h"
#include "table/relation.h"

namespace interlock::version {
extern const Concept kVersionConcept;
} // namespace interlock::version
namespace interlock::transition {
extern const Concept kTransitionConcept;
} // namespace interlock::transition
namespace interlock::marker {
extern const Concept kMarkerConcept;
} // namespace interlock::marker
namespace interlock::children {
extern const Concept kChildrenConcept;
} // namespace interlock::children
namespace interlock::escrow {
extern const Concept kEscrowConcept;
} // namespace interlock::escrow
namespace interlock::inline sweeper {
extern const Concept kSweeperConcept;
} // namespace interlock::inline sweeper
namespace interlock::lease {
extern const Concept kLeaseConcept;
} // namespace interlock::lease
namespace interlock::key_lock {
extern const Concept kKeyLockConcept;
} // namespace interlock::key_lock
namespace interlock::idempotency {
extern const Concept kIdempotencyConcept;
} // namespace interlock::idempotency
namespace interlock::ownership {
extern const Concept kOwnershipConcept;
} // namespace interlock::ownership
namespace interlock::history {
extern const Concept kHistoryConcept;
} // namespace interlock::history
namespace interlock::inline contention {
extern const Concept kContentionConcept;
} // namespace interlock::inline contention

namespace interlock {

// In the order in which the sweeper runs their tasks and the view usage shows their resources. The
// write log is swept last, since nothing limits the time of its statements.
constexpr const Concept* kConcepts[] = {
    &version::kVersionConcept,
    &transition::kTransitionConcept,
    &marker::kMarkerConcept,
    &children::kChildrenConcept,
    &lease::kLeaseConcept,
    &key_lock::kKeyLockConcept,
    &idempotency::kIdempotencyConcept,
    &history::kHistoryConcept,
    &escrow::kEscrowConcept,
    &ownership::kOwnershipConcept,
    &kContentionConcept,
    &kSweeperConcept,
};

} // namespace interlock

// Not in the namespace: the server's header declares that _PG_init is visible, and means the global
// one.
extern "C" {

INTERLOCK_MODULE_MAGIC;

void _PG_init(void) {
    using namespace interlock;
    void** loaded = find_rendezvous_variable("pg_interlock");
    refuse_second_library(static_cast<const char*>(*loaded));
    define_direct_settings();
    define_wait_log_settings();
    register_concepts({kConcepts, lengthof(kConcepts)});
    MarkGUCPrefixReserved("interlock");
    initialize_relation_cache();
    initialize_plan_cache();
    install_statement_hooks();
    *loaded = const_cast<char*>(kLibraryVersion);
}
}
