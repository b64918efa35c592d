// Rows as jsonb and back: the changes a caller asks for, and the stored row a conflict shows.
#pragma once

#include "table/key.h"
#include "table/populate.h"
#include "table/relation.h"

namespace interlock {

// A row taken apart, by attribute number - 1: behind a null each column would be searched for anew.
struct RowValues {
    Datum* values;
    bool* nulls;
    NullableDatum operator[](AttrNumber attnum) const {
        return {values[attnum - 1], nulls[attnum - 1]};
    }
};
RowValues values_of_row(TupleDesc columns, HeapTuple row);
inline RowValues values_in(TupleTableSlot* row) {
    slot_getallattrs(row);
    return {row->tts_values, row->tts_isnull};
}

// New values for some columns, in column order.
struct Changes {
    int count;
    Bitmapset* columns;
    AttrNumber* attnums;
    Datum* values;
    bool* nulls;
};

// Reads {column: value}. Raises 22023 when it is no object, 42703 for an unknown column, 428C9 for
// a generated one, 22023 for a key column or one in `managed` (which the verb sets itself), and
// what the conversion of a value raises.
Changes parse_changes(Relation rel, const RelationFacts* facts, Jsonb* json,
                      const Bitmapset* managed);

// How a read locks its row: a clause of SELECT, and what it does when another transaction has it.
enum class RowStrength : uint8 { kNone, kKeyShare, kShare, kNoKeyUpdate, kUpdate };
enum class RowWait : uint8 { kWait, kNowait, kSkipLocked };
class Statement;
struct RowLock {
    RowStrength strength = RowStrength::kNone;
    RowWait wait = RowWait::kWait;
};

// Adds the clause, if any, to a SELECT; the number tells kept plans of different locks apart.
void add_row_lock(Statement* statement, RowLock lock);
AttrNumber row_lock_number(RowLock lock);

// The columns of a row as a fresh snapshot sees it, or as its newest version once locked. Lives in
// the caller's context.
struct StoredRow {
    bool found;
    const Bitmapset* attnums;
    TupleDesc columns;
    HeapTuple tuple;
};

// Reads one row with the caller's privileges and row security.
StoredRow read_row(Relation rel, const RelationFacts* facts, const Key& key,
                   const Bitmapset* columns, RowLock lock = {});

// A column of a stored row; it must be one of those read.
Datum stored_value(const StoredRow& row, AttrNumber attnum, bool* is_null);
Datum stored_row_to_jsonb(const StoredRow& row);

// The columns read as a row of the table, with nulls for the others.
HeapTuple stored_row_as_tuple(const StoredRow& row, const RelationFacts* facts);

// Raises P0002 with the key.
[[noreturn]] void raise_no_such_row(Relation rel, const RelationFacts* facts, const Key& key);

// The write found no row although the row meets its condition: a row security policy (42501), or a
// trigger or rule (09000), keeps the caller from writing it.
[[noreturn]] void raise_suppressed(Relation rel);

// Whether two values of a column that are not null have the same bytes.
bool same_image(Form_pg_attribute attribute, Datum left, Datum right);

// The columns' names as text[].
Datum column_names(TupleDesc columns, const Bitmapset* which);

// The value of a column of one of the integer types.
int64 integer_of(Oid type, Datum value);

// Whether a column has the same bytes in both rows.
bool same_value(TupleDesc columns, HeapTuple left, HeapTuple right, AttrNumber attnum);
bool same_value(TupleDesc columns, TupleTableSlot* left, TupleTableSlot* right, AttrNumber attnum);

// The columns the current user may SELECT.
Bitmapset* readable_columns(Relation rel);

// What an error may tell of a stored row: the columns that the current user could SELECT of it now,
// from the table or from one that it is a partition of.
Bitmapset* tellable_columns(Relation rel, HeapTuple row);

// The row's key as JSON for an error; null when it is not among the columns that it may tell.
const char* tellable_key(const RelationFacts* facts, const Bitmapset* tellable, HeapTuple row);

} // namespace interlock
