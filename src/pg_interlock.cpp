// The module: what the server finds and runs when it loads the library. No other file names all
// concepts.

#include "execution/eligible.h"
#include "server/concept.h"
#include "server/library_version.h"
#include "server/wait_log.h"
#include "statement/running.h"
#include "table/plan.h"
#include "table/relation.h"

namespace interlock {

extern const Concept kVersionConcept;
extern const Concept kTransitionConcept;
extern const Concept kMarkerConcept;
extern const Concept kChildrenConcept;
extern const Concept kEscrowConcept;
extern const Concept kSweeperConcept;
extern const Concept kLeaseConcept;
extern const Concept kKeyLockConcept;
extern const Concept kIdempotencyConcept;
extern const Concept kOwnershipConcept;
extern const Concept kHistoryConcept;
extern const Concept kContentionConcept;

namespace {

// In the order in which the sweeper runs their tasks and the view usage shows their resources. The
// write log is swept last, since nothing limits the time of its statements.
constexpr const Concept* kConcepts[] = {
    &kVersionConcept, &kTransitionConcept, &kMarkerConcept,      &kChildrenConcept,
    &kLeaseConcept,   &kKeyLockConcept,    &kIdempotencyConcept, &kHistoryConcept,
    &kEscrowConcept,  &kOwnershipConcept,  &kContentionConcept,  &kSweeperConcept,
};

} // namespace

} // namespace interlock

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
