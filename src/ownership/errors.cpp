#include "ownership/errors.h"

#include "server/error.h"
#include "table/column.h"

namespace interlock::ownership {

static char* detail_of(const OwnedByOther& found) {
    const char* columns = column_names_json(found.info->columns, found.columns);
    return json_object({{"table", shown_name(found.rel)},
                        {"key", nullptr, found.key},
                        {"columns", nullptr, columns},
                        {"owner", found.owner},
                        {"writer", found.writer}});
}

void raise_column_owned(const OwnedByOther& found) {
    const char* column = column_name(found.info, bms_next_member(found.columns, -1));
    const char* table = RelationGetRelationName(found.rel);
    const char* owner = quote_literal_cstr(found.owner);
    ereport(
        ERROR,
        (errcode(kColumnNotOwned),
         found.releases ? errmsg("value of column \"%s\" of table \"%s\" belongs to writer \"%s\"",
                                 column, table, found.owner)
                        : errmsg("column \"%s\" of table \"%s\" belongs to writer \"%s\"", column,
                                 table, found.owner),
         errdetail_internal("%s", detail_of(found)),
         found.releases
             ? errhint("Begin the transaction with SELECT interlock.set_writer(%s), or let the "
                       "table's owner release it.",
                       owner)
             : errhint("Leave the column as it is stored, or begin the transaction with "
                       "SELECT interlock.set_writer(%s);",
                       owner)));
}

} // namespace interlock::ownership
