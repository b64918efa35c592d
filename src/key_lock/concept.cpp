// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "key_lock/key_lock.h"
#include "key_lock/name.h"

namespace interlock {

extern const Concept kKeyLockConcept = {
    .name = "key_lock",
    .define_settings = define_key_lock_settings,
    .preload = preload_key_names,
};

} // namespace interlock
