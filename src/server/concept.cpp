#include "server/concept.h"

namespace interlock::inline server {

static Concepts registered = {nullptr, 0};

Concepts concepts() { return registered; }

void register_concepts(Concepts all) {
    registered = all;
    for (const Concept* each : all)
        if (each->define_settings != nullptr)
            each->define_settings();
    if (!process_shared_preload_libraries_in_progress)
        return;
    for (const Concept* each : all)
        if (each->preload != nullptr)
            each->preload();
}

} // namespace interlock::inline server
