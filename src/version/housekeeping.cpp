#include "version/housekeeping.h"

namespace interlock::version {

// The server counts generated columns among those that are named.
static bool assigned_only_ignored(const RowChange& change, const Versioning* versioning) {
    TupleDesc columns = RelationGetDescr(change.rel);
    bool any = false;
    for (int bit = -1; (bit = bms_next_member(change.assigned, bit)) >= 0;) {
        int attnum = bit + FirstLowInvalidHeapAttributeNumber;
        if (attnum > 0 && TupleDescAttr(columns, attnum - 1)->attgenerated != '\0')
            continue;
        if (!bms_is_member(attnum, versioning->ignored))
            return false;
        any = true;
    }
    return any;
}

// A function that names the version moves it, as a changed child does with its parent.
static bool names_version(const RowChange& change, const Versioning* versioning) {
    return bms_is_member(versioning->column - FirstLowInvalidHeapAttributeNumber, change.assigned);
}

static bool keeps_unchanged(const RowChange& change, const Versioning* versioning,
                            bool by_function) {
    return versioning->keeps_unchanged && !(by_function && names_version(change, versioning)) &&
           same_value(RelationGetDescr(change.rel), change.old_row, change.new_row,
                      versioning->column);
}

bool is_housekeeping(const RowChange& change, const Versioning* versioning, bool by_function) {
    if (!versioning->has_ignored && !versioning->keeps_unchanged)
        return false;
    TupleDesc columns = RelationGetDescr(change.rel);
    bool changed = false;
    for (int attnum = 1; attnum <= columns->natts; attnum++) {
        Form_pg_attribute attribute = TupleDescAttr(columns, attnum - 1);
        if (attribute->attisdropped || attnum == versioning->column ||
            attribute->attgenerated != '\0' ||
            (by_function && bms_is_member(attnum, change.info->maintained)) ||
            same_value(columns, change.old_row, change.new_row, attnum))
            continue;
        if (!bms_is_member(attnum, versioning->ignored))
            return false;
        changed = true;
    }
    return changed || assigned_only_ignored(change, versioning) ||
           keeps_unchanged(change, versioning, by_function);
}

} // namespace interlock::version
