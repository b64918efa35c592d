#include "row_change.h"

#include "marker.h"
#include "version.h"

namespace interlock {

HeapTuple judge(RowChange change) {
    const RelationFacts* facts = change.facts;
    if (facts->marker != nullptr && trigger_fires(facts->marker->enabled))
        change.new_row = judge_marker(change);
    if (change.new_row != nullptr && facts->machine_count > 0)
        change.new_row = judge_transitions(change);
    if (change.new_row != nullptr && facts->versioning != nullptr &&
        trigger_fires(facts->versioning->enabled))
        change.new_row = judge_version(change);
    return change.new_row;
}

} // namespace interlock
