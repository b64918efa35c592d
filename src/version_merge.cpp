// Three-way merge: what the client changed since it read `base`, onto the row as it is now.

#include "error.h"
#include "version_update.h"

namespace interlock {

namespace {

constexpr int kAttempts = 10;

bool equal_as_jsonb(const RelationFacts* facts, AttrNumber attnum, Datum left, Datum right) {
    TupleDesc column = CreateTemplateTupleDesc(1);
    TupleDescCopyEntry(column, 1, facts->columns, attnum);
    bool is_null = false;
    Jsonb* rows[2] = {
        DatumGetJsonbP(row_to_jsonb(column, heap_form_tuple(column, &left, &is_null))),
        DatumGetJsonbP(row_to_jsonb(column, heap_form_tuple(column, &right, &is_null)))};
    return compareJsonbContainers(&rows[0]->root, &rows[1]->root) == 0;
}

// Equal in the sense of the column's type, so that 1.0 is 1 and key order in jsonb does not count;
// as jsonb where the type has no equality, which json, for one, has not: the base is jsonb, too.
bool equal_values(const RelationFacts* facts, AttrNumber attnum, Datum left, bool left_null,
                  Datum right, bool right_null) {
    if (left_null || right_null)
        return left_null == right_null;
    Form_pg_attribute attribute = TupleDescAttr(facts->columns, attnum - 1);
    TypeCacheEntry* type = lookup_type_cache(attribute->atttypid, TYPECACHE_EQ_OPR_FINFO);
    if (OidIsValid(type->eq_opr_finfo.fn_oid))
        return DatumGetBool(
            FunctionCall2Coll(&type->eq_opr_finfo, attribute->attcollation, left, right));
    return datum_image_eq(left, right, attribute->attbyval, attribute->attlen) ||
           equal_as_jsonb(facts, attnum, left, right);
}

void require_base_columns(Relation rel, const RelationFacts* facts, const Changes& changes,
                          Jsonb* base) {
    if (!JB_ROOT_IS_OBJECT(base))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("base must be a jsonb object"),
                 errhint("Give the row as the client read it.")));
    for (int i = 0; i < changes.count; i++) {
        const char* name = column_name(facts, changes.attnums[i]);
        JsonbValue member;
        if (getKeyJsonValueFromContainer(&base->root, name, strlen(name), &member) == nullptr)
            ereport(ERROR,
                    (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                     errmsg("base has no column \"%s\", which the changes of table \"%s\" set",
                            name, RelationGetRelationName(rel)),
                     errhint("Give the row as the client read it, with every column it changes.")));
    }
}

// The changes that remain when those are left out that the client did not make, or that the other
// side made as well. Columns that both sides changed to different values are conflicts.
Changes remaining_changes(const RelationFacts* facts, const Changes& changes, HeapTuple base,
                          const StoredRow& row, Bitmapset** conflicts) {
    Changes remaining = changes;
    remaining.count = 0;
    remaining.columns = nullptr;
    remaining.attnums = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (changes.count + 1)));
    remaining.values = static_cast<Datum*>(palloc(sizeof(Datum) * (changes.count + 1)));
    remaining.nulls = static_cast<bool*>(palloc(sizeof(bool) * (changes.count + 1)));
    for (int i = 0; i < changes.count; i++) {
        AttrNumber attnum = changes.attnums[i];
        bool base_null, stored_null;
        Datum base_value = heap_getattr(base, attnum, facts->columns, &base_null);
        Datum stored = stored_value(row, attnum, &stored_null);
        auto is_wanted = [&](Datum value, bool is_null) {
            return equal_values(facts, attnum, changes.values[i], changes.nulls[i], value, is_null);
        };
        if (is_wanted(base_value, base_null) || is_wanted(stored, stored_null))
            continue;
        if (!equal_values(facts, attnum, base_value, base_null, stored, stored_null)) {
            *conflicts = bms_add_member(*conflicts, attnum);
            continue;
        }
        int next = remaining.count++;
        remaining.columns = bms_add_member(remaining.columns, attnum);
        remaining.attnums[next] = attnum;
        remaining.values[next] = changes.values[i];
        remaining.nulls[next] = changes.nulls[i];
    }
    return remaining;
}

} // namespace

Merge merge_changes(Relation rel, const RelationFacts* facts, const Key& key,
                    const Changes& changes, Jsonb* base) {
    require_base_columns(rel, facts, changes, base);
    HeapTuple base_row = row_from_jsonb(facts, base);
    // The columns to compare must be read, whatever the caller may otherwise see.
    Bitmapset* columns =
        bms_add_members(columns_to_report(rel, facts->versioning), changes.columns);
    Merge merge = {};
    for (int i = 0; i < kAttempts; i++) {
        merge.row = read_row(rel, facts, key, columns);
        if (!merge.row.found) {
            merge.outcome = Outcome::kNotFound;
            return merge;
        }
        merge.stored = stored_token(merge.row, facts->versioning);
        merge.outcome = Outcome::kConflict;
        merge.conflicts = nullptr;
        Changes remaining =
            remaining_changes(facts, changes, base_row, merge.row, &merge.conflicts);
        if (merge.conflicts != nullptr)
            return merge;
        if (remaining.count == 0) { // the row already says what the client wants
            merge.outcome = Outcome::kMerged;
            return merge;
        }
        Attempt attempt = update_if_current(rel, facts, key, merge.stored, remaining);
        if (attempt.outcome == Outcome::kUpdated) {
            merge.outcome = Outcome::kMerged;
            merge.stored = attempt.stored;
            merge.row = read_row(rel, facts, key, columns);
            return merge;
        }
    }
    return merge;
}

} // namespace interlock
