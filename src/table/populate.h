// Makes rows from jsonb objects by the function jsonb_populate_record.
#pragma once

#include "table/info.h"

namespace interlock::inline table {

// A row with the members of the object, and nulls for other columns, as jsonb_populate_record makes
// it. Two cases differ, so that this reverses row_to_jsonb (table/row_json.h). A null for a json or
// jsonb column that is NOT NULL becomes the null of JSON. A string for a json column becomes the
// JSON in that string, if jsonb cannot hold that JSON.
HeapTuple row_from_jsonb(const TableInfo* info, Jsonb* json);

// Prepares `populate` to read rows of the type. The metadata of each table has such a function.
void prepare_populate(FmgrInfo* populate, Oid row_type, MemoryContext memory);

// As row_from_jsonb(), for columns that belong to no table.
HeapTuple record_from_jsonb(TupleDesc columns, Jsonb* json);

// JSON text as jsonb. Null if jsonb cannot hold it, such as "\u0000" or 1e1000000.
Jsonb* jsonb_of_text(char* json);

// An object with those members for which keep(name) is true.
template <typename Keep>
Jsonb* with_members(Jsonb* object, Keep&& keep) {
    ArrayBuildState* others = initArrayResult(TEXTOID, CurrentMemoryContext, false);
    JsonbIterator* iterator = JsonbIteratorInit(&object->root);
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE;)
        if (token == WJB_KEY && !keep(std::string_view(value.val.string.val, value.val.string.len)))
            accumArrayResult(others,
                             PointerGetDatum(cstring_to_text_with_len(value.val.string.val,
                                                                      value.val.string.len)),
                             false, TEXTOID, CurrentMemoryContext);
    return DatumGetJsonbP(DirectFunctionCall2(jsonb_delete_array, JsonbPGetDatum(object),
                                              makeArrayResult(others, CurrentMemoryContext)));
}

} // namespace interlock::inline table
