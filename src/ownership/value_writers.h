// The writers of single values, for columns that are owned once changed (ownership.h): an object of
// columns with their writers in column value_writers of the row.
#pragma once

#include "ownership/ownership.h"

namespace interlock::ownership {

// The writer to whom the value of the column belongs. Null: none. Any role may have inserted the
// row, with anything in its value_writers.
const char* writer_of_value(NullableDatum writers, const char* column);

// The object after `columns` were given to the writer, or to nobody if the writer is null.
NullableDatum with_writer(const TableInfo* info, NullableDatum writers, const Bitmapset* columns,
                          const char* writer);

// Whether release_values() writes the row for which a trigger of the table fires. Then it has set
// value_writers.
bool is_release(const Ownership* ownership);

// Warns if values of the column belong to writers already: an earlier declaration has left them. To
// be called with an SPI connection.
void warn_of_former_writers(Oid relid, const char* column);

} // namespace interlock::ownership
