#include "marker/audit.h"

#include "execution/stored_row.h"
#include "server/arguments.h"
#include "table/own_table.h"
#include "table/restricted.h"
#include "table/subscription.h"

namespace interlock::marker {

constexpr int kColumns = 8;

namespace {

struct Line {
    Oid types[kColumns];
    Datum values[kColumns];
    bool nulls[kColumns];
    int count;

    void add(Oid type, Datum value, bool is_null = false) {
        types[count] = type;
        values[count] = value;
        nulls[count++] = is_null;
    }
    void add(const char* text) {
        add(TEXTOID, text != nullptr ? CStringGetTextDatum(text) : 0, text == nullptr);
    }
};

} // namespace

void audit_loss(const MarkedRow& call, const LostMarker& lost) {
    Line line = {};
    line.add(GetUserNameFromId(GetUserId(), false));
    line.add(lost.action);
    line.add(qualified_name(call.rel));
    line.add(JSONBOID, key_to_jsonb(call.info, *read_table_key(call.rel, call.info, call.key)));
    line.add(lost.holder);
    line.add(lost.taken_by);
    line.add(TIMESTAMPTZOID, TimestampTzGetDatum(lost.until), lost.until == DT_NOBEGIN);
    line.add(lost.reason);
    write_own_table("row_lock_audit", TRIGGER_TYPE_INSERT,
                    insert_of_line(own_table("row_lock_audit"),
                                   "forced_by, action, table_name, key, holder, taken_by, "
                                   "would_expire_at, reason",
                                   kColumns),
                    kColumns, line.types, line.values, line.nulls);
}

const char* reason_argument(const Arguments& arguments, int n) {
    const char* reason = arguments.string(n, "reason");
    if (reason[0] == '\0')
        refuse_empty("reason", "It is stored in interlock.row_lock_audit.");
    return reason;
}

} // namespace interlock::marker
