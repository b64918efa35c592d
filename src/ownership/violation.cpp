#include "ownership/violation.h"

#include "server/error.h"

namespace interlock::ownership {

static const char* names_json(const TableInfo* info, const Bitmapset* columns) {
    StringInfoData out;
    initStringInfo(&out);
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;) {
        appendStringInfoString(&out, out.len == 0 ? "[" : ", ");
        escape_json(&out, column_name(info, static_cast<AttrNumber>(column)));
    }
    appendStringInfoChar(&out, ']');
    return out.data;
}

const char* violation_detail(Relation rel, const TableInfo* info, const char* key,
                             const Bitmapset* columns, const char* owner, const char* writer) {
    return json_object({{"table", shown_name(rel)},
                        {"key", nullptr, key},
                        {"columns", nullptr, names_json(info, columns)},
                        {"owner", owner},
                        {"writer", writer}});
}

} // namespace interlock::ownership
