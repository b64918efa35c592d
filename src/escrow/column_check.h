// What a table and a column must be to have escrow counters.
#pragma once

#include "escrow/escrow.h"

namespace interlock::escrow {

// Raises 0A000 for the kind of the table, or of its key, and 55000 where it has no key.
void check_table_kind(Relation rel, const TableInfo* info);

// Raises 55000 for a column that is used otherwise.
void check_column(Relation rel, const TableInfo* info, AttrNumber attnum);

} // namespace interlock::escrow
