// The view contention, and reset_contention. The rows are read from shared memory and the catalog's
// caches: no table is locked or opened.

#include "contention/counters.h"
#include "server/result_row.h"
#include "table/relation.h"

namespace interlock::overview {

static bool may_see(const LineName& name, bool sees_all);
static HTAB* new_sums();
static void add_line(HTAB* sums, LineCopy line);
static void put_line(ReturnSetInfo* output, const LineCopy& line);

extern "C" {
PG_FUNCTION_INFO_V1(list_contention);
PG_FUNCTION_INFO_V1(reset_contention);

Datum list_contention(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    bool sees_all = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
    HTAB* sums = new_sums();
    LineCopy line;
    for (int n = 0; n < line_count(); n++) {
        CHECK_FOR_INTERRUPTS();
        if (read_line(n, &line) && may_see(line.name, sees_all))
            add_line(sums, line);
    }
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, sums);
    while (auto* sum = static_cast<LineCopy*>(hash_seq_search(&scan)))
        put_line(reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo), *sum);
    return 0;
}

Datum reset_contention(FunctionCallInfo) {
    if (has_lines())
        reset_lines();
    PG_RETURN_VOID();
}
}

constexpr const char* kKindNames[kCountedKinds] = {
    "other",     "versioning",    "transitions",       "marker",
    "ownership", "require_lease", "select_for_update", "escrow",
    "lease",     "key",           "applock",           "idempotency"};

static bool is_of_table(CountedKind kind) {
    return kind != CountedKind::kNone && static_cast<int>(kind) < kTableKinds;
}

static bool may_see(const LineName& name, bool sees_all) {
    if (name.kind == CountedKind::kNone)
        return sees_all;
    if (name.database != MyDatabaseId)
        return sees_all && SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(name.database));
    if (is_of_table(name.kind))
        return may_see_counts(name.object);
    return sees_all || has_privs_of_role(GetUserId(), name.object);
}

static HTAB* new_sums() {
    HASHCTL control = {};
    control.keysize = sizeof(LineName);
    control.entrysize = sizeof(LineCopy);
    control.hcxt = CurrentMemoryContext;
    return hash_create("pg_interlock contention", 256, &control,
                       HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

// One line for a key class, whichever roles use it, and for the tables of another database.
static void add_line(HTAB* sums, LineCopy line) {
    if (!is_of_table(line.name.kind) || line.name.database != MyDatabaseId)
        line.name.object = InvalidOid;
    bool found;
    auto* sum = static_cast<LineCopy*>(hash_search(sums, &line.name, HASH_ENTER, &found));
    if (!found) {
        *sum = line;
        return;
    }
    sum->since = Min(sum->since, line.since);
    for (int i = 0; i < kCounters; i++)
        sum->counters[i] += Min(line.counters[i], kCounterEnd - sum->counters[i]);
}

static bool has_counted(const LineCopy& line) {
    for (uint64 counter : line.counters)
        if (counter != 0)
            return true;
    return false;
}

// Another database may have another encoding.
static Datum class_text(const LineName& name) {
    char shown[kMostClassBytes];
    memcpy(shown, name.key_class, name.length);
    if (!pg_verify_mbstr(GetDatabaseEncoding(), shown, name.length, true))
        for (int i = 0; i < name.length; i++)
            if (IS_HIGHBIT_SET(shown[i]))
                shown[i] = '?';
    return PointerGetDatum(cstring_to_text_with_len(shown, name.length));
}

static Datum span_of(uint64 microseconds) {
    auto* span = static_cast<Interval*>(palloc0(sizeof(Interval)));
    span->time = static_cast<TimeOffset>(microseconds);
    return IntervalPGetDatum(span);
}

// database, rel, kind, key_class, the counters up to retries, since, the others
static void put_line(ReturnSetInfo* output, const LineCopy& line) {
    constexpr int kNames = 4;
    constexpr int kBeforeSince = static_cast<int>(Counter::kRenewals);
    const LineName& name = line.name;
    bool is_other = name.kind == CountedKind::kNone;
    if (is_other && !has_counted(line))
        return;
    const char* found = is_other ? nullptr : get_database_name(name.database);
    NameData database = {};
    if (found != nullptr)
        namestrcpy(&database, found);
    Datum values[kNames + kCounters + 1] = {
        NameGetDatum(&database), ObjectIdGetDatum(name.object),
        CStringGetTextDatum(kKindNames[static_cast<int>(name.kind)]), class_text(name)};
    bool nulls[kNames + kCounters + 1] = {found == nullptr, !OidIsValid(name.object), false,
                                          is_other || is_of_table(name.kind)};
    for (int i = 0; i < kCounters; i++)
        values[kNames + i + (i < kBeforeSince ? 0 : 1)] =
            i == static_cast<int>(Counter::kWaitTime)
                ? span_of(line.counters[i])
                : Int64GetDatum(static_cast<int64>(line.counters[i]));
    values[kNames + kBeforeSince] = TimestampTzGetDatum(line.since);
    add_result_row(output, values, nulls);
}

} // namespace interlock::overview
