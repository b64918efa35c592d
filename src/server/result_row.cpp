#include "server/result_row.h"

#include "server/library_version.h"
#include "server/scope.h"

namespace interlock::inline server {

namespace {

// What a function returns never changes. OUT parameters are looked up once in a session; of a named
// type, which can be altered, the server keeps the columns.
struct KnownType {
    Oid function;
    TupleDesc columns;           // of OUT parameters, else null
    const TypeCacheEntry* named; // the server keeps the entry, and clears it when the type changes
};

} // namespace

constexpr int kKnownTypes = 16;
static KnownType known_types[kKnownTypes] = {};
static int next_to_forget = 0;

static TupleDesc look_up(FunctionCallInfo fcinfo) {
    TupleDesc columns;
    if (get_call_result_type(fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "return type must be a row type");
    return BlessTupleDesc(columns);
}

static void remember(Oid function, TupleDesc columns) {
    TupleDesc copy = nullptr;
    const TypeCacheEntry* named = nullptr;
    if (columns->tdtypeid == RECORDOID)
        copy = in_context(TopMemoryContext, [&] { return CreateTupleDescCopy(columns); });
    else
        named = lookup_type_cache(columns->tdtypeid, TYPECACHE_TUPDESC);
    KnownType* known = &known_types[next_to_forget];
    next_to_forget = (next_to_forget + 1) % kKnownTypes;
    if (known->columns != nullptr)
        FreeTupleDesc(known->columns);
    *known = {function, copy, named};
}

static TupleDesc columns_of(const TypeCacheEntry* type) {
    return type->tupDesc != nullptr ? type->tupDesc
                                    : lookup_type_cache(type->type_id, TYPECACHE_TUPDESC)->tupDesc;
}

static TupleDesc columns_of(FunctionCallInfo fcinfo) {
    Oid function = fcinfo->flinfo->fn_oid;
    for (const KnownType& known : known_types)
        if (known.function == function)
            return known.columns != nullptr ? known.columns : columns_of(known.named);
    TupleDesc columns = look_up(fcinfo);
    remember(function, columns);
    return columns;
}

[[noreturn]] static void refuse_columns(int columns, int count) {
    char* version = extension_row().version;
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("the function returns %d columns, and %d in version %s of the pg_interlock "
                    "library",
                    columns, count, kLibraryVersion),
             errhint("%s", version != nullptr ? advise_on_versions(version) : "")));
}

static void require_columns(TupleDesc columns, int count) {
    if (columns->natts > count)
        refuse_columns(columns->natts, count);
}

Datum result_row(FunctionCallInfo fcinfo, int count, Datum* values, bool* nulls) {
    TupleDesc columns = columns_of(fcinfo);
    require_columns(columns, count);
    return HeapTupleGetDatum(heap_form_tuple(columns, values, nulls));
}

void add_result_row(const ReturnSetInfo* result, int count, Datum* values, bool* nulls) {
    require_columns(result->setDesc, count);
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

} // namespace interlock::inline server
