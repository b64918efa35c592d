// The executor state around a row that is written without a statement, as far as the server's own
// calls, its triggers and its errors use it.
#pragma once

#include "table/relation.h"

namespace interlock::inline execution {

// Columns as the server numbers them in a set.
Bitmapset* offset_columns(const Bitmapset* columns);

// The table that the state's statement writes, and which columns it names in INSERT or SET, as
// offset_columns has them. Call once, in the state's memory context. The server copies the table's
// triggers; they are left out where none must fire.
ResultRelInfo* open_target(EState* estate, Relation rel, Bitmapset* inserted, Bitmapset* updated,
                           bool fires_triggers = true);

// Before the calls for one row, with the snapshot active; AfterTriggerEndQuery(estate) goes after
// them.
void begin_query(EState* estate);

// NOT NULL and CHECK, with the prepared checks of the metadata.
void check_row(ResultRelInfo* target, EState* estate, TupleTableSlot* row, const TableInfo* info);

// Closes all that was opened in it.
void free_state(EState* estate);

} // namespace interlock::inline execution
