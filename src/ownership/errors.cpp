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

static const char* first_column(const OwnedByOther& found) {
    return column_name(found.info, bms_next_member(found.columns, -1));
}

void raise_column_owned(const OwnedByOther& found) {
    ereport(ERROR, (errcode(kColumnNotOwned),
                    errmsg("column \"%s\" of table \"%s\" belongs to writer \"%s\"",
                           first_column(found), RelationGetRelationName(found.rel), found.owner),
                    errdetail_internal("%s", detail_of(found)),
                    errhint("Leave the column as it is stored, or begin the transaction with "
                            "SELECT interlock.set_writer(%s);",
                            quote_literal_cstr(found.owner))));
}

void raise_value_owned(const OwnedByOther& found) {
    ereport(ERROR, (errcode(kColumnNotOwned),
                    errmsg("value of column \"%s\" of table \"%s\" belongs to writer \"%s\"",
                           first_column(found), RelationGetRelationName(found.rel), found.owner),
                    errdetail_internal("%s", detail_of(found)),
                    errhint("Begin the transaction with SELECT interlock.set_writer(%s), or let "
                            "the table's owner release it.",
                            quote_literal_cstr(found.owner))));
}

} // namespace interlock::ownership
