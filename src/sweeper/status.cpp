// The view interlock.sweeper, and waking the sweeper by a call.

#include "server/result_row.h"
#include "sweeper/deadline.h"
#include "sweeper/state.h"
#include "sweeper/sweeper.h"

namespace interlock::inline sweeper {

extern "C" {
PG_FUNCTION_INFO_V1(sweeper_status);
PG_FUNCTION_INFO_V1(wake_sweeper);
}

static Datum interval_of(int64 microseconds) {
    auto* interval = static_cast<Interval*>(palloc0(sizeof(Interval)));
    interval->time = microseconds;
    return IntervalPGetDatum(interval);
}

static const char* state_name(const DatabaseEntry& entry, TimestampTz now) {
    if (entry.running)
        return "running";
    if (!sweeper_enabled)
        return "off";
    if (entry.next_deadline == DT_NOEND)
        return "idle";
    return entry.next_deadline <= now ? "due" : "waiting";
}

// Messages of another encoding are shown as far as they are ASCII: a conversion could fail, and
// with it the view for every database.
static Datum error_of(const DatabaseEntry& entry) {
    char* message = pstrdup(entry.last_error);
    bool readable = entry.error_encoding == GetDatabaseEncoding() &&
                    pg_verify_mbstr(entry.error_encoding, message, strlen(message), true);
    for (char* byte = message; !readable && *byte != '\0'; byte++)
        if (IS_HIGHBIT_SET(*byte))
            *byte = '?';
    return CStringGetTextDatum(message);
}

// name, state, runs, released, failed, last_run, last_error, next_deadline, lag, max_lag
static void put_database(ReturnSetInfo* output, const DatabaseEntry& entry) {
    char* name = get_database_name(entry.database);
    if (name == nullptr)
        return; // dropped, and the launcher has not noticed yet
    Datum values[10] = {CStringGetTextDatum(name),
                        CStringGetTextDatum(state_name(entry, GetCurrentTimestamp())),
                        Int64GetDatum(entry.runs),
                        Int64GetDatum(entry.released),
                        Int64GetDatum(entry.failed),
                        TimestampTzGetDatum(entry.last_run),
                        error_of(entry),
                        TimestampTzGetDatum(entry.next_deadline),
                        interval_of(entry.lag),
                        interval_of(entry.max_lag)};
    bool nulls[10] = {};
    nulls[5] = entry.last_run == 0;
    nulls[6] = entry.last_error[0] == '\0';
    nulls[7] = TIMESTAMP_NOT_FINITE(entry.next_deadline);
    nulls[8] = nulls[9] = entry.runs == 0;
    add_result_row(output, values, nulls);
}

extern "C" {

Datum sweeper_status(PG_FUNCTION_ARGS) {
    if (!sweeper_memory_is_there())
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("the sweeper is not available: pg_interlock is not preloaded"),
                 errhint("Set shared_preload_libraries = 'pg_interlock' and restart the server. "
                         "interlock.sweep() releases expired markers at once.")));
    InitMaterializedSRF(fcinfo, 0);
    // Copied first: building rows reads catalogs, which must not happen under the lock.
    auto* copies = static_cast<DatabaseEntry*>(palloc(sizeof(DatabaseEntry) * kMaxDatabases));
    int count = 0;
    with_entries([&](DatabaseEntry* entry) {
        if (entry->has_extension)
            copies[count++] = *entry;
        return true;
    });
    for (int i = 0; i < count; i++)
        put_database(reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo), copies[i]);
    return 0;
}

Datum wake_sweeper([[maybe_unused]] PG_FUNCTION_ARGS) {
    note_deadline(GetCurrentTimestamp());
    PG_RETURN_VOID();
}
}

} // namespace interlock::inline sweeper
