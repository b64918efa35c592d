// The INSERT of one row with a key, said once as data:
//
//     INSERT INTO table (...) VALUES (...) ON CONFLICT (key) DO NOTHING RETURNING ...
//
// for a caller that has just looked for the key and found none. It runs as that statement, or
// without one by the calls that the server's executor would make for it, with the same waits,
// triggers, checks and errors. Where it is not eligible (execution/eligible.h), the statement runs.
// execution/update.h lists what differs.
#pragma once

#include "execution/row_insert.h"

namespace interlock::inline execution {

// False when nothing was inserted: the key is there, or a trigger or rule suppresses the row.
// `returned` gets the columns asked for, in the current context.
bool insert_row(const RowInsert& insert, NullableDatum* returned);

} // namespace interlock::inline execution
