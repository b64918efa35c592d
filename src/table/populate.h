// Rows made of jsonb objects by the function jsonb_populate_record.
#pragma once

#include "table/info.h"

namespace interlock {

// A row with the members of the object and nulls elsewhere, exactly as jsonb_populate_record does
// it.
HeapTuple row_from_jsonb(const TableInfo* info, Jsonb* json);

// Makes `populate` ready to read rows of the type; the metadata has one for each table.
void prepare_populate(FmgrInfo* populate, Oid row_type, MemoryContext memory);

// As row_from_jsonb, for columns that are no table's.
HeapTuple record_from_jsonb(TupleDesc columns, Jsonb* json);

} // namespace interlock
