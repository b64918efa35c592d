// What the verbs on marked rows have in common: their arguments, and how they read a marker.
#pragma once

#include "marker/write.h"

namespace interlock {

// Reads the arguments (rel, key), and (holder) if the verb names one. Raises what open_table(),
// require_marker() and key_argument() do, and 22023 for a holder's name.
class Arguments;
MarkedRow open_call(const Arguments& arguments, bool names_holder,
                    LOCKMODE mode = RowExclusiveLock);

// The marker as it is stored; one that is live has a holder, the empty name if none is stored.
struct Look {
    bool found;
    MarkerState state;
    const char* reason;
};
Look look(const MarkedRow& call);

} // namespace interlock
