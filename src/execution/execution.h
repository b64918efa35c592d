// The executor state for a row that is written without a statement. It has what the server's own
// calls, triggers and errors use.
#pragma once

#include "table/relation.h"

namespace interlock::inline execution {

// The set of columns as the server numbers them, with its offset.
Bitmapset* offset_columns(const Bitmapset* columns);

// Opens the table that the statement of `estate` writes. `inserted` and `updated` are the columns
// that INSERT or SET names, as offset_columns() returns them. Call it once, in the state's memory
// context. The server copies the table's triggers. They are left out if none must fire.
ResultRelInfo* open_target(EState* estate, Relation rel, Bitmapset* inserted, Bitmapset* updated,
                           bool fires_triggers = true);

// To be called before the calls for one row, with the snapshot active. AfterTriggerEndQuery(estate)
// follows after these calls.
void begin_query(EState* estate);

// Checks NOT NULL and CHECK constraints, with the prepared checks of the metadata.
void check_row(ResultRelInfo* target, EState* estate, TupleTableSlot* row, const TableInfo* info);

// Closes everything that was opened in the state.
void free_state(EState* estate);

} // namespace interlock::inline execution
