#include "execution/row_write.h"

namespace interlock::inline execution {

void RowWrite::set(const Changes& given) {
    Assert(changes == nullptr && assignment_count == 0);
    changes = &given;
    columns = given.columns;
}

void RowWrite::set(AttrNumber column, const Expression* value) {
    if (assignment_count == kMostAssignments)
        elog(ERROR, "a write has too many assignments");
    if (assignment_count == 0)
        columns = bms_copy(columns); // it may be the caller's
    columns = bms_add_member(columns, column);
    assignments[assignment_count++] = {column, value};
}

void RowWrite::keep(AttrNumber column) { set(column, nullptr); }

void RowWrite::returns(AttrNumber column) {
    if (returned_count == kMostReturned)
        elog(ERROR, "a write returns too many columns");
    returned[returned_count++] = column;
}

} // namespace interlock::inline execution
