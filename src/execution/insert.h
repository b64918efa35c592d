// The INSERT of one row without a statement: the calls that the server's executor would make for
//
//     INSERT INTO table (...) VALUES (...) ON CONFLICT (key) DO NOTHING RETURNING ...
//
// of a caller who has just looked for the key and found none, with the same waits, triggers, checks
// and errors. Whatever is not plain (execution/probe.h, triggers of statements, defaults that need
// the planner, values that the statement would convert) is declined before anything is done, and
// the caller runs the statement. What differs is told in execution/update.h.
#pragma once

#include "execution/row_insert.h"

namespace interlock {

// kNoRow when nothing was inserted: the key is there, or a BEFORE trigger suppresses the row.
// `returning` is told of the row as it was stored.
DirectOutcome insert_directly(const RowInsert& insert, RowCallback returning);

template <typename Returning>
DirectOutcome insert_directly(const RowInsert& insert, Returning&& returning) {
    auto tell = [](void* closure, TupleTableSlot* row) {
        (*static_cast<std::remove_reference_t<Returning>*>(closure))(row);
        return true;
    };
    return insert_directly(insert, RowCallback{tell, &returning});
}

} // namespace interlock
