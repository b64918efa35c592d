// Three-way merge: applies the client's changes since it read `base` to the current row.

#include "ownership/ownership.h"
#include "ownership/write_log.h"
#include "server/arguments.h"
#include "server/error.h"
#include "table/row_json.h"
#include "version/update.h"

namespace interlock::version {

constexpr int kAttempts = 10;

// The base must have the columns that are changed, and those that belong to them.
static void require_base_columns(Relation rel, const TableInfo* info, const Changes& changes,
                                 const Bitmapset* columns, Jsonb* base) {
    if (!JB_ROOT_IS_OBJECT(base))
        refuse_argument("base", "must be a jsonb object", "Give the row as the client read it.");
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;) {
        const char* name = column_name(info, static_cast<AttrNumber>(column));
        JsonbValue member;
        if (getKeyJsonValueFromContainer(&base->root, name, strlen(name), &member) == nullptr)
            ereport(
                ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 bms_is_member(column, changes.columns)
                     ? errmsg("base has no column \"%s\", which the changes of table \"%s\" set",
                              name, RelationGetRelationName(rel))
                     : errmsg("base has no column \"%s\", which is in one group with a changed "
                              "column of table \"%s\"",
                              name, RelationGetRelationName(rel)),
                 errhint("Give the row as the client read it, with every column it changes.")));
    }
}

// Input functions of extensions may raise anything for what is no value of their type: hstore has
// an internal error for an object, which its own cast to json makes.
static void explain_base(void*) {
    int code = geterrcode();
    if (code == ERRCODE_INTERNAL_ERROR || code == ERRCODE_SYNTAX_ERROR)
        errcode(ERRCODE_INVALID_TEXT_REPRESENTATION);
    if (is_of_input(geterrcode()))
        errhint("Give the row in argument \"base\" as a function of pg_interlock returned it.");
}

static HeapTuple read_base(const TableInfo* info, const Bitmapset* columns, Jsonb* base) {
    Jsonb* members = with_members(base, [&](std::string_view name) {
        return bms_is_member(find_attribute(info->columns, name), columns);
    });
    ErrorContextCallback context = {};
    context.previous = error_context_stack;
    context.callback = explain_base;
    error_context_stack = &context;
    HeapTuple row = row_from_jsonb(info, members);
    error_context_stack = context.previous;
    return row;
}

namespace {

// The input of a merge.
struct Sides {
    const TableInfo* info;
    const Changes* changes;
    HeapTuple base;
    const StoredRow* row;
};

} // namespace

static NullableDatum base_value(const Sides& sides, AttrNumber column) {
    NullableDatum value;
    value.value = heap_getattr(sides.base, column, sides.info->columns, &value.isnull);
    return value;
}

static NullableDatum their_value(const Sides& sides, AttrNumber column) {
    NullableDatum value;
    value.value = stored_value(*sides.row, column, &value.isnull);
    return value;
}

static NullableDatum my_value(const Sides& sides, int i) {
    return {sides.changes->values[i], sides.changes->nulls[i]};
}

static bool equal(const Sides& sides, AttrNumber column, NullableDatum left, NullableDatum right) {
    return equal_values(sides.info->columns, column, left, right);
}

static bool they_changed(const Sides& sides, AttrNumber column) {
    return !equal(sides, column, base_value(sides, column), their_value(sides, column));
}

// Whether another writer changed a column of the same group.
static bool group_changed(const Sides& sides, AttrNumber column) {
    const Bitmapset* group = ownership::add_groups(sides.info, bms_make_singleton(column));
    for (int other = -1; (other = bms_next_member(group, other)) >= 0;)
        if (other != column && they_changed(sides, static_cast<AttrNumber>(other)))
            return true;
    return false;
}

namespace {

enum class Decision : uint8 { kNothing, kWrite, kSkip, kCombine, kConflict };

} // namespace

// The result of the i-th change; `value` is the value to write.
static Decision decide(const Sides& sides, int i, NullableDatum* value) {
    AttrNumber column = sides.changes->attnums[i];
    NullableDatum base = base_value(sides, column);
    NullableDatum theirs = their_value(sides, column);
    NullableDatum mine = *value = my_value(sides, i);
    if (equal(sides, column, mine, base))
        return Decision::kNothing;
    bool changed = !equal(sides, column, base, theirs);
    bool counted = changed && ownership::is_counted(sides.info, column);
    if (equal(sides, column, mine, theirs) && !counted)
        return Decision::kNothing;
    if (group_changed(sides, column))
        return Decision::kConflict;
    if (!changed)
        return Decision::kWrite;
    const ownership::ColumnRule* rule = ownership::rule_of(sides.info, column);
    if (rule == nullptr || rule->access != ownership::Access::kShared || rule->group != 0 ||
        rule->strategy == ownership::Strategy::kRetry)
        return Decision::kConflict;
    if (rule->strategy == ownership::Strategy::kSkip)
        return Decision::kSkip;
    value->isnull = false;
    return ownership::combine_values(sides.info, column, base, theirs, mine, &value->value)
               ? Decision::kCombine
               : Decision::kConflict;
}

namespace {

// The remaining changes, and the results of the others.
struct Plan {
    Changes write;
    Bitmapset* conflicts;
    Bitmapset* skipped;
    Bitmapset* combined;
};

} // namespace

static Plan plan_merge(const Sides& sides) {
    Plan plan = {};
    size_t room = sides.changes->count + 1;
    plan.write.attnums = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * room));
    plan.write.values = static_cast<Datum*>(palloc(sizeof(Datum) * room));
    plan.write.nulls = static_cast<bool*>(palloc(sizeof(bool) * room));
    for (int i = 0; i < sides.changes->count; i++) {
        AttrNumber column = sides.changes->attnums[i];
        NullableDatum value;
        Decision decision = decide(sides, i, &value);
        if (decision == Decision::kConflict)
            plan.conflicts = bms_add_member(plan.conflicts, column);
        else if (decision == Decision::kSkip)
            plan.skipped = bms_add_member(plan.skipped, column);
        else if (decision == Decision::kCombine)
            plan.combined = bms_add_member(plan.combined, column);
        if (decision != Decision::kWrite && decision != Decision::kCombine)
            continue;
        int next = plan.write.count++;
        plan.write.columns = bms_add_member(plan.write.columns, column);
        plan.write.attnums[next] = column;
        plan.write.values[next] = value.value;
        plan.write.nulls[next] = value.isnull;
    }
    return plan;
}

// The changes as a row of the table, with nulls for the other columns.
static HeapTuple changes_as_row(const Sides& sides) {
    int count = sides.info->columns->natts;
    auto* values = static_cast<Datum*>(palloc0(sizeof(Datum) * count));
    auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * count));
    memset(nulls, true, count);
    for (int i = 0; i < sides.changes->count; i++) {
        values[sides.changes->attnums[i] - 1] = sides.changes->values[i];
        nulls[sides.changes->attnums[i] - 1] = sides.changes->nulls[i];
    }
    return heap_form_tuple(sides.info->columns, values, nulls);
}

static void log_decision(Relation rel, const Sides& sides, const Key& key,
                         ownership::WriteDecision decision, const Bitmapset* columns) {
    if (bms_is_empty(columns))
        return;
    TupleDesc names = sides.info->columns;
    ownership::WriteSample sample = {};
    sample.key = key_to_jsonb(sides.info, *table_key(sides.info, key, *sides.row));
    sample.stored =
        ownership::sample_of_row(names, columns, stored_row_as_tuple(*sides.row, sides.info));
    sample.given = ownership::sample_of_row(names, columns, changes_as_row(sides));
    ownership::log_row(
        {decision, "update", ownership::ownership_of(sides.info)->root, InvalidCommandId, nullptr},
        sample, rel, columns);
}

Merge merge_changes(Relation rel, const TableInfo* info, const Key& key, const Changes& changes,
                    Jsonb* base, OnConflict on_conflict) {
    Bitmapset* compared = ownership::add_groups(info, changes.columns);
    require_base_columns(rel, info, changes, compared, base);
    HeapTuple base_row = read_base(info, compared, base);
    // The columns to compare must be read, whether the caller may see them or not.
    Bitmapset* columns = bms_add_members(columns_to_report(rel, versioning_of(info)), compared);
    Merge merge = {};
    for (int i = 0; i < kAttempts; i++) {
        merge.row = read_row(rel, info, key, columns);
        if (!merge.row.found) {
            merge.outcome = Outcome::kNotFound;
            return merge;
        }
        merge.stored = stored_token(merge.row, versioning_of(info));
        StoredRow row = merge.row;
        Sides sides = {info, &changes, base_row, &row};
        Plan plan = plan_merge(sides);
        merge.outcome = Outcome::kConflict;
        merge.conflicts = plan.conflicts;
        if (merge.conflicts != nullptr || on_conflict == OnConflict::kReport)
            return merge;
        if (plan.write.count > 0) {
            Attempt attempt = update_if_current(rel, info, key, merge.stored, plan.write);
            if (attempt.outcome != Outcome::kUpdated && attempt.outcome != Outcome::kUnchanged)
                continue;
            merge.stored = attempt.stored;
            merge.row = read_row(rel, info, key, columns);
        } // else the row already has the client's value, or keeps its own
        merge.outcome = Outcome::kMerged;
        log_decision(rel, sides, key, ownership::WriteDecision::kSkipped, plan.skipped);
        log_decision(rel, sides, key, ownership::WriteDecision::kMerged, plan.combined);
        return merge;
    }
    return merge;
}

} // namespace interlock::version
