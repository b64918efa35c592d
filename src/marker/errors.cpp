#include "marker/errors.h"

#include "server/error.h"

namespace interlock::marker {

static const char* time_text(TimestampTz time) {
    return TIMESTAMP_NOT_FINITE(time) ? nullptr : pstrdup(timestamptz_to_str(time));
}

void raise_being_edited(Relation rel, const TableInfo* info, const Marker& marker, HeapTuple row,
                        const MarkerState& state) {
    const Bitmapset* readable = readable_columns(rel, row);
    auto may_show = [&](MarkerRole role) {
        return bms_is_member(marker.columns[role].attnum, readable);
    };
    const char* table = RelationGetRelationName(rel);
    const char* holder = may_show(kHolder) ? state.holder : nullptr;
    const char* since = may_show(kTime) ? time_text(state.since) : nullptr;
    const char* until = may_show(kUntil) ? time_text(state.until) : nullptr;
    const char* key = readable_key(info, readable, row);
    ereport(
        ERROR,
        (errcode(kRowBeingEdited),
         holder != nullptr ? errmsg("row of table \"%s\" is being edited by \"%s\"", table, holder)
                           : errmsg("row of table \"%s\" is being edited", table),
         errdetail_internal("%s", json_object({{"table", shown_name(rel)},
                                               {"key", nullptr, key},
                                               {"holder", holder},
                                               {"locked_at", since},
                                               {"expires_at", until}})),
         errhint(
             "Wait until it is released or expires. The holder writes with interlock.save_row, or "
             "after interlock.set_holder in the same transaction.")));
}

void raise_not_held(const MarkedRow& call, const Look& found) {
    count_call(call);
    count(call.info, CountedKind::kMarker, Counter::kRefusals);
    const char* present = found.state.live ? found.state.holder : nullptr;
    const char* key = key_to_text(call.info, *found.key);
    ereport(ERROR,
            (errcode(kMarkerNotHeld),
             errmsg("\"%s\" does not hold the row of table \"%s\"", call.holder,
                    RelationGetRelationName(call.rel)),
             errdetail_internal("%s", json_object({{"table", shown_name(call.rel)},
                                                   {"key", nullptr, key},
                                                   {"holder", present}})),
             errhint("The marker expired, was released or was never taken: lock the row again, "
                     "read it, and repeat the change.")));
}

void raise_unwritten(const MarkedRow& call) {
    Look found = look(call);
    if (!found.found)
        raise_no_such_row(call.rel, call.info, call.key);
    if (!is_held(call, found))
        raise_not_held(call, found);
    raise_suppressed(call.rel);
}

} // namespace interlock::marker
