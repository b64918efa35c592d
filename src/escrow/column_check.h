// Which tables and columns can have escrow counters.
#pragma once

#include "escrow/escrow.h"

namespace interlock::escrow {

// Raises 0A000 for an unsuitable kind of table or key, and 55000 if the table has no key.
void check_table_kind(Relation rel, const TableInfo* info);

// Raises 55000 if the column is used for something else.
void check_column(Relation rel, const TableInfo* info, AttrNumber attnum);

} // namespace interlock::escrow
