// The rows of the view column_ownership, and samples of values for the write log.

#include "ownership/ownership.h"

#include "server/result_row.h"
#include "server/scope.h"
#include "table/catalog_trigger.h"
#include "table/row_json.h"

namespace interlock::ownership {

static void list_rule(Oid relid, const Trigger* trigger, const ColumnRule& rule,
                      ReturnSetInfo* output);

extern "C" {
PG_FUNCTION_INFO_V1(list_column_rules);

// From the catalog, without opening the tables: no lock to wait for. Nothing of a trigger with
// invalid arguments.
Datum list_column_rules(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    each_trigger_of("ownership_trigger", InvalidOid, [&](Oid relid, const Trigger* trigger) {
        ColumnRules rules = {};
        if (trigger->tgisclone || !read_rules(trigger, &rules))
            return;
        for (int i = 0; i < rules.count; i++)
            list_rule(relid, trigger, rules.rules[i], output);
    });
    return 0;
}
}

// rel, column_name, writer, on_violation, strategy, group_number, enforced, once_changed
static void list_rule(Oid relid, const Trigger* trigger, const ColumnRule& rule,
                      ReturnSetInfo* output) {
    Datum values[8] = {ObjectIdGetDatum(relid)};
    bool nulls[8] = {false,
                     false,
                     rule.access != Access::kOwned,
                     rule.access != Access::kOwned,
                     rule.access != Access::kShared,
                     rule.group == 0,
                     false,
                     rule.access != Access::kOwned};
    values[1] = DirectFunctionCall1(namein, CStringGetDatum(rule.name));
    if (!nulls[2]) {
        values[2] = CStringGetTextDatum(rule.writer);
        values[3] = CStringGetTextDatum(on_violation_name(rule.on_violation));
    }
    if (!nulls[4])
        values[4] = CStringGetTextDatum(strategy_name(rule.strategy));
    values[5] = Int32GetDatum(rule.group);
    values[6] = BoolGetDatum(trigger_fires(trigger->tgenabled));
    values[7] = BoolGetDatum(rule.once_changed);
    add_result_row(output, values, nulls);
}

// Values of at most so many bytes are shown in full.
constexpr Size kSampleBytes = 8192;

static bool is_large(Form_pg_attribute attribute, Datum value) {
    return attribute->attlen == -1 && toast_raw_datum_size(value) > kSampleBytes;
}

// Whether a value of the type may be far longer as text: a number of a few bytes can have 131,000
// digits.
static bool may_hold_numbers(Oid type) {
    Oid base = getBaseType(type);
    Oid element = get_element_type(base);
    if (OidIsValid(element))
        return may_hold_numbers(element);
    char kind = get_typtype(base);
    return base == NUMERICOID || base == JSONBOID || kind == TYPTYPE_COMPOSITE ||
           kind == TYPTYPE_RANGE || kind == TYPTYPE_MULTIRANGE;
}

static const char* text_of(Form_pg_attribute attribute, Datum value) {
    Oid output;
    bool is_varlena;
    getTypeOutputInfo(attribute->atttypid, &output, &is_varlena);
    return OidOutputFunctionCall(output, value);
}

// Zero: it is not.
static size_t length_of_long_text(Form_pg_attribute attribute, Datum value) {
    size_t length = 0;
    if (may_hold_numbers(attribute->atttypid))
        in_scratch([&] { length = strlen(text_of(attribute, value)); });
    return length > 8 * kSampleBytes ? length : 0;
}

// A text instead of a value, or null.
static const char* stand_in(Form_pg_attribute attribute, Datum value) {
    if (is_large(attribute, value))
        return psprintf("(%zu bytes)", static_cast<size_t>(toast_raw_datum_size(value) - VARHDRSZ));
    if (size_t length = length_of_long_text(attribute, value); length > 0)
        return psprintf("(%zu characters)", length);
    return nullptr;
}

Datum sample_of_row(TupleDesc columns, const Bitmapset* attnums, HeapTuple row) {
    int count = bms_num_members(attnums);
    TupleDesc sample = CreateTemplateTupleDesc(count);
    auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * count));
    auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * count));
    int i = 0;
    for (int column = -1; (column = bms_next_member(attnums, column)) >= 0; i++) {
        Form_pg_attribute attribute = TupleDescAttr(columns, column - 1);
        values[i] = heap_getattr(row, column, columns, &nulls[i]);
        const char* other = nulls[i] ? nullptr : stand_in(attribute, values[i]);
        if (other != nullptr)
            values[i] = CStringGetTextDatum(other);
        TupleDescInitEntry(sample, i + 1, NameStr(attribute->attname),
                           other != nullptr ? TEXTOID : attribute->atttypid, -1, 0);
    }
    return row_to_jsonb(sample, heap_form_tuple(sample, values, nulls));
}

} // namespace interlock::ownership
