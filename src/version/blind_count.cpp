#include "version/blind_count.h"

#include "server/result_row.h"
#include "server/shared_memory.h"
#include "server/usage_report.h"
#include "statement/running.h"
#include "table/relation.h"

namespace interlock::version {

constexpr int kLines = 1024;

// A power of two: at 1,000 transactions in a second they reach back for a minute.
constexpr uint32 kWriters = 65536;

namespace {

struct Line {
    pg_atomic_uint64 table; // database and table; zero for a line that is free
    pg_atomic_uint64 blind;
    pg_atomic_uint64 overwrote;
    pg_atomic_uint64 since;
};

// The last transactions that wrote: a transaction id in the high half, the second in the low one.
struct Counts {
    Line lines[kLines];
    pg_atomic_flag reuses; // a session takes the line of a table that is gone
    pg_atomic_uint64 writers[kWriters];
};

} // namespace

static Counts* counts = nullptr;
static int window = 60; // seconds

static uint64 word_of(uint32 high, uint32 low) { return static_cast<uint64>(high) << 32 | low; }

extern "C" {
PG_FUNCTION_INFO_V1(is_preloaded);
PG_FUNCTION_INFO_V1(list_blind_updates);

// for_statements, for_all
Datum is_preloaded(PG_FUNCTION_ARGS) {
    Datum values[2] = {BoolGetDatum(knows_all_statements()), BoolGetDatum(counts != nullptr)};
    bool nulls[2] = {};
    return result_row(fcinfo, values, nulls);
}

Datum list_blind_updates(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    for (int i = 0; counts != nullptr && i < kLines; i++) {
        Line* line = &counts->lines[i];
        uint64 table = pg_atomic_read_u64(&line->table);
        auto relid = static_cast<Oid>(table);
        if (table >> 32 != MyDatabaseId || !may_see_counts(relid))
            continue;
        uint64 since = pg_atomic_read_u64(&line->since);
        Datum values[] = {ObjectIdGetDatum(relid),
                          Int64GetDatum(static_cast<int64>(pg_atomic_read_u64(&line->blind))),
                          Int64GetDatum(static_cast<int64>(pg_atomic_read_u64(&line->overwrote))),
                          TimestampTzGetDatum(static_cast<TimestampTz>(since))};
        bool nulls[] = {false, false, false, since == 0};
        tuplestore_putvalues(output->setResult, output->setDesc, values, nulls);
    }
    return 0;
}
}

static void request_memory() { RequestAddinShmemSpace(sizeof(Counts)); }

static void attach_memory() {
    bool found;
    counts =
        static_cast<Counts*>(ShmemInitStruct("pg_interlock blind updates", sizeof(Counts), &found));
    if (found)
        return;
    pg_atomic_init_flag(&counts->reuses);
    for (Line& line : counts->lines)
        for (pg_atomic_uint64* word : {&line.table, &line.blind, &line.overwrote, &line.since})
            pg_atomic_init_u64(word, 0);
    for (pg_atomic_uint64& writer : counts->writers)
        pg_atomic_init_u64(&writer, 0);
}

static Line* line_at(uint32 place) { return &counts->lines[place % kLines]; }

static void begin_line(Line* line) {
    pg_atomic_write_u64(&line->since, static_cast<uint64>(GetCurrentTimestamp()));
}

// The line of a table, which may be a new one; null when all are taken by others.
static Line* find_line(uint64 table, uint32 first) {
    for (int i = 0; i < kLines; i++) {
        Line* line = line_at(first + i);
        uint64 present = pg_atomic_read_u64(&line->table);
        if (present == 0 && pg_atomic_compare_exchange_u64(&line->table, &present, table)) {
            begin_line(line);
            return line;
        }
        if (present == table)
            return line;
    }
    return nullptr;
}

static bool is_gone(uint64 table) {
    auto database = static_cast<Oid>(table >> 32);
    return database == MyDatabaseId
               ? !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(static_cast<Oid>(table)))
               : !SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(database));
}

// No line is free any more, so all of them are looked at for a table, wherever its own is.
static Line* find_line_of_gone(uint32 first) {
    for (int i = 0; i < kLines; i++)
        if (is_gone(pg_atomic_read_u64(&line_at(first + i)->table)))
            return line_at(first + i);
    return nullptr;
}

// Null when another session does the same now, which may be for the same table. Raises nothing.
static Line* take_line(Line* line, uint64 table, uint32 first) {
    if (!pg_atomic_test_set_flag(&counts->reuses))
        return nullptr;
    Line* found = find_line(table, first);
    if (found == nullptr) {
        pg_atomic_write_u64(&line->blind, 0);
        pg_atomic_write_u64(&line->overwrote, 0);
        begin_line(line);
        pg_atomic_write_u64(&line->table, table);
        found = line;
    }
    pg_atomic_clear_flag(&counts->reuses);
    return found;
}

static Line* line_for(Oid relid) {
    constexpr int kPause = 60 * 1000; // milliseconds; the search asks for each table
    static TimestampTz last_search = 0;
    uint64 table = word_of(MyDatabaseId, relid);
    uint32 first = murmurhash32(relid ^ MyDatabaseId);
    Line* line = find_line(table, first);
    if (line != nullptr)
        return line;
    TimestampTz now = GetCurrentTimestamp();
    if (!TimestampDifferenceExceeds(last_search, now, kPause))
        return nullptr;
    line = find_line_of_gone(first);
    if (line == nullptr) {
        last_search = now;
        return nullptr;
    }
    return take_line(line, table, first);
}

static uint32 present_second() {
    return static_cast<uint32>(GetCurrentStatementStartTimestamp() / USECS_PER_SEC);
}

// Ids that follow each other are in different lines of the processor's cache.
static pg_atomic_uint64* writer_of(TransactionId id) {
    constexpr uint32 kPerLine = PG_CACHE_LINE_SIZE / sizeof(uint64);
    uint32 place = id % kWriters;
    return &counts->writers[place * kPerLine % kWriters + place * kPerLine / kWriters];
}

static bool was_written_lately(HeapTuple row) {
    TransactionId writer = HeapTupleHeaderGetXmin(row->t_data);
    if (!TransactionIdIsNormal(writer))
        return false;
    uint64 noted = pg_atomic_read_u64(writer_of(writer));
    // The other statement may have begun after this one, and got the row before it.
    auto age = static_cast<int32>(present_second() - static_cast<uint32>(noted));
    return noted >> 32 == writer && age <= window;
}

void note_versioned_write() {
    if (counts == nullptr)
        return;
    TransactionId writer = GetCurrentTransactionId();
    uint64 noted = word_of(writer, present_second());
    pg_atomic_uint64* place = writer_of(writer);
    if (pg_atomic_read_u64(place) != noted)
        pg_atomic_write_u64(place, noted);
}

void count_blind_write(Oid table, HeapTuple row) {
    if (counts == nullptr)
        return;
    Line* line = line_for(table);
    if (line == nullptr)
        return;
    pg_atomic_fetch_add_u64(&line->blind, 1);
    if (was_written_lately(row))
        pg_atomic_fetch_add_u64(&line->overwrote, 1);
}

void define_blind_window() {
    DefineCustomIntVariable(
        "interlock.blind_window",
        "Blind updates of rows that another transaction has written within this "
        "time are counted as overwrites.",
        nullptr, &window, 60, 1, 3600, PGC_SIGHUP, GUC_UNIT_S, nullptr, nullptr, nullptr);
}

void request_blind_counts() { add_shared_area({request_memory, attach_memory}); }

void report_blind_counts(UsageReport* report) {
    if (counts == nullptr)
        return;
    int64 used = 0;
    for (Line& line : counts->lines)
        used += pg_atomic_read_u64(&line.table) != 0 ? 1 : 0;
    report_total(report, "tables with blind updates", used, kLines);
}

} // namespace interlock::version
