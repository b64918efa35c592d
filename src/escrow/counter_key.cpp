// The values by which a counter is found, as text.

#include "escrow/journal.h"
#include "server/arguments.h"

namespace interlock::escrow {

// prints_alike() is for values; a text of another collation may equal another text.
bool may_name_counter(const TableInfo* info, AttrNumber attnum) {
    Form_pg_attribute attribute = TupleDescAttr(info->columns, attnum - 1);
    if (attribute->attgenerated != '\0') // after the trigger that ends the counter of the old key
        return false;
    switch (attribute->atttypid) {
    case INT2OID:
    case INT4OID:
    case INT8OID:
    case UUIDOID:
        return true;
    case TEXTOID:
    case VARCHAROID:
        return get_collation_isdeterministic(attribute->attcollation);
    default:
        return false;
    }
}

// value_of_column(attnum) is that of a column of the key.
template <typename ValueOf>
static text* print_key(const TableInfo* info, const EscrowColumn& column,
                       ValueOf&& value_of_column) {
    Datum* texts = static_cast<Datum*>(palloc(sizeof(Datum) * column.key_count));
    for (int i = 0; i < column.key_count; i++) {
        Oid type = TupleDescAttr(info->columns, column.key[i] - 1)->atttypid;
        texts[i] = CStringGetTextDatum(print_value(type, value_of_column(column.key[i])));
    }
    ArrayType* array = construct_array(texts, column.key_count, TEXTOID, -1, false, TYPALIGN_INT);
    return cstring_to_text(print_value(TEXTARRAYOID, PointerGetDatum(array)));
}

static int place_in(const UniqueKey& key, AttrNumber attnum) {
    int place = 0;
    while (key.columns[place].attnum != attnum)
        place++;
    return place;
}

text* counter_key(const TableInfo* info, const EscrowColumn& column, const Key& key) {
    return print_key(info, column,
                     [&](AttrNumber attnum) { return key.values[place_in(*key.by, attnum)]; });
}

text* counter_key(const TableInfo* info, const EscrowColumn& column, HeapTuple row) {
    for (int i = 0; i < column.key_count; i++)
        if (heap_attisnull(row, column.key[i], info->columns))
            return nullptr;
    return print_key(info, column, [&](AttrNumber attnum) {
        bool is_null;
        return heap_getattr(row, attnum, info->columns, &is_null);
    });
}

bool read_counter_key(const TableInfo* info, const EscrowColumn& column, const text* values,
                      Key* key) {
    const UniqueKey* by = key_of_counters(info, column);
    if (by == nullptr)
        return false;
    Datum array = OidInputFunctionCall(F_ARRAY_IN, text_to_cstring(values), TEXTOID, -1);
    Datum* texts;
    bool* nulls;
    int count;
    deconstruct_array(DatumGetArrayTypeP(array), TEXTOID, -1, false, TYPALIGN_INT, &texts, &nulls,
                      &count);
    if (count != column.key_count)
        return false;
    *key = {by, {}};
    for (int i = 0; i < count; i++) {
        Form_pg_attribute attribute = TupleDescAttr(info->columns, column.key[i] - 1);
        Oid input, parameter;
        getTypeInputInfo(attribute->atttypid, &input, &parameter);
        key->values[place_in(*by, column.key[i])] = OidInputFunctionCall(
            input, TextDatumGetCString(texts[i]), parameter, attribute->atttypmod);
    }
    return true;
}

void require_counter_key(Relation rel, const TableInfo* info, const EscrowColumn& column,
                         const Key& key) {
    const UniqueKey* by = key_of_counters(info, column);
    if (key.by == by)
        return;
    if (by != &info->key)
        raise_key_changed(rel, info, column);
    refuse_argument("key", "must be the key of the table",
                    psprintf("It is %s.", list_of_columns(info, info->key)));
}

} // namespace interlock::escrow
