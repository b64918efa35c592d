// Rows made of jsonb objects by the function jsonb_populate_record.
#pragma once

#include "table/info.h"

namespace interlock::inline table {

// A row with the members of the object and nulls elsewhere, as jsonb_populate_record does it. But
// the inverse of row_to_jsonb (table/row_json.h) in two cases: a null for a column of json or jsonb
// that is NOT NULL is the null of JSON, and a string for one of json is its text if that is JSON
// which jsonb does not take.
HeapTuple row_from_jsonb(const TableInfo* info, Jsonb* json);

// Makes `populate` ready to read rows of the type; the metadata has one for each table.
void prepare_populate(FmgrInfo* populate, Oid row_type, MemoryContext memory);

// As row_from_jsonb, for columns that are no table's.
HeapTuple record_from_jsonb(TupleDesc columns, Jsonb* json);

// JSON as jsonb; null if jsonb does not take it: "\u0000", 1e1000000.
Jsonb* jsonb_of_text(char* json);

// The object with those members for which keep(name) is true.
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
