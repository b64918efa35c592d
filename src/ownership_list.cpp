// What the view column_ownership shows, and samples of values for the write log.

#include "ownership.h"

#include "plan.h"
#include "row.h"
#include "scope.h"

using namespace interlock;

namespace {

void list_rules(Oid relid, const bytea* arguments, int count, ReturnSetInfo* output);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(list_column_rules);

// From the catalog, without opening the tables: no lock to wait for.
Datum list_column_rules(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    with_spi([&] {
        run_command(
            "SELECT t.tgrelid, t.tgnargs, t.tgargs FROM pg_catalog.pg_trigger t "
            "WHERE t.tgfoid OPERATOR(pg_catalog.=) "
            "'interlock.ownership_trigger()'::pg_catalog.regprocedure "
            "AND t.tgparentid OPERATOR(pg_catalog.=) 0 ORDER BY 1");
        SPITupleTable* rows = SPI_tuptable;
        for (uint64 i = 0; i < rows->numvals; i++) {
            Datum values[3];
            bool nulls[3];
            heap_deform_tuple(rows->vals[i], rows->tupdesc, values, nulls);
            list_rules(DatumGetObjectId(values[0]), DatumGetByteaPP(values[2]),
                       DatumGetInt16(values[1]), output);
        }
    });
    return 0;
}
}

namespace {

// rel, column_name, writer, on_violation, strategy, group_number
void list_rule(Oid relid, const ColumnRule& rule, ReturnSetInfo* output) {
    Datum values[6] = {ObjectIdGetDatum(relid)};
    bool nulls[6] = {false,
                     false,
                     rule.access != Access::kOwned,
                     rule.access != Access::kOwned,
                     rule.access != Access::kShared,
                     rule.group == 0};
    values[1] = DirectFunctionCall1(namein, CStringGetDatum(rule.name));
    if (!nulls[2]) {
        values[2] = CStringGetTextDatum(rule.writer);
        values[3] = CStringGetTextDatum(on_violation_name(rule.on_violation));
    }
    if (!nulls[4])
        values[4] = CStringGetTextDatum(strategy_name(rule.strategy));
    values[5] = Int32GetDatum(rule.group);
    tuplestore_putvalues(output->setResult, output->setDesc, values, nulls);
}

void list_rules(Oid relid, const bytea* arguments, int count, ReturnSetInfo* output) {
    auto** texts = static_cast<char**>(palloc(sizeof(char*) * (count + 1)));
    char* at = VARDATA_ANY(arguments);
    for (int i = 0; i < count; i++) {
        texts[i] = at;
        at += strlen(at) + 1;
    }
    ColumnRules rules;
    parse_rules(texts, count, &rules);
    for (int i = 0; i < rules.count; i++)
        list_rule(relid, rules.rules[i], output);
}

// Values of at most so many bytes are told in full.
constexpr Size kSampleBytes = 8192;

bool is_large(Form_pg_attribute attribute, Datum value) {
    return attribute->attlen == -1 && toast_raw_datum_size(value) > kSampleBytes;
}

} // namespace

namespace interlock {

Datum sample_of_row(TupleDesc columns, const Bitmapset* attnums, HeapTuple row) {
    int count = bms_num_members(attnums);
    TupleDesc sample = CreateTemplateTupleDesc(count);
    auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * count));
    auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * count));
    int i = 0;
    for (int column = -1; (column = bms_next_member(attnums, column)) >= 0; i++) {
        Form_pg_attribute attribute = TupleDescAttr(columns, column - 1);
        values[i] = heap_getattr(row, column, columns, &nulls[i]);
        bool large = !nulls[i] && is_large(attribute, values[i]);
        if (large)
            values[i] = CStringGetTextDatum(psprintf(
                "(%zu bytes)", static_cast<size_t>(toast_raw_datum_size(values[i]) - VARHDRSZ)));
        TupleDescInitEntry(sample, i + 1, NameStr(attribute->attname),
                           large ? TEXTOID : attribute->atttypid, -1, 0);
    }
    return row_to_jsonb(sample, heap_form_tuple(sample, values, nulls));
}

} // namespace interlock
