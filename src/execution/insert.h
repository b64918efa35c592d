// The INSERT of one row with a key, described as data:
//
//     INSERT INTO table (...) VALUES (...) ON CONFLICT (key) DO NOTHING RETURNING ...
//
// It is for a caller that has just looked for the key and found no row. It runs without a statement
// if it is eligible (execution/eligible.h): then it makes the calls that the server's executor
// would make, with the same waits, triggers, checks and errors. Otherwise it runs as that
// statement. execution/update.h lists the differences.
#pragma once

#include "execution/row_insert.h"

namespace interlock::inline execution {

// Returns false if nothing was inserted: there is a row with the key, or a trigger or rule
// suppressed the row. `returned` gets the wanted columns, in the current context.
bool insert_row(const RowInsert& insert, NullableDatum* returned);

} // namespace interlock::inline execution
