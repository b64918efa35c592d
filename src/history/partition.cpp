#include "history/partition.h"

#include "history/table.h"
#include "server/relation_lock.h"
#include "server/scope.h"
#include "server/subtransaction.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "table/restricted.h"

namespace interlock::history {

// How long a lock on the history table is waited for.
constexpr const char* kLockTimeout = "100ms";

constexpr int kAhead = 2; // periods after the current one

namespace {

// The entries of a partition: from <= changed_at < to. DT_NOBEGIN and DT_NOEND are no bounds.
struct Range {
    Oid partition;
    TimestampTz from;
    TimestampTz to;
};

// The partitions of a history table in their order, without the default partition.
struct Ranges {
    Range* first;
    int count;
    Oid fallback; // the default partition
    const Range* begin() const { return first; }
    const Range* end() const { return first + count; }
};

} // namespace

// Read from the catalog, because the relation cache plans the expressions of the partition key.
static bool is_partitioned_by_time(Relation rel) {
    HeapTuple tuple = SearchSysCache1(PARTRELID, ObjectIdGetDatum(RelationGetRelid(rel)));
    if (!HeapTupleIsValid(tuple))
        return false;
    auto* form = reinterpret_cast<Form_pg_partitioned_table>(GETSTRUCT(tuple));
    AttrNumber column = form->partnatts == 1 ? form->partattrs.values[0] : InvalidAttrNumber;
    bool by_range = form->partstrat == PARTITION_STRATEGY_RANGE;
    ReleaseSysCache(tuple);
    if (!by_range || column == InvalidAttrNumber)
        return false;
    Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), column - 1);
    return attribute->atttypid == TIMESTAMPTZOID &&
           strcmp(NameStr(attribute->attname), history_columns[kEntryChangedAt].name) == 0;
}

bool can_have_entries(Relation rel) {
    return rel->rd_rel->relkind == RELKIND_RELATION ||
           (is_partitioned(rel) && is_partitioned_by_time(rel));
}

// --- Finding partitions --------------------------------------------------------------------------

static PartitionDesc partitions_of(Relation rel) {
    return RelationGetPartitionDesc(rel, !IsolationUsesXactSnapshot());
}

Relation open_partition(Relation rel, TimestampTz changed_at) {
    PartitionDesc partitions = partitions_of(rel);
    if (partitions->nparts == 0)
        return nullptr;
    PartitionKey key = RelationGetPartitionKey(rel);
    PartitionBoundInfo bounds = partitions->boundinfo;
    Datum value = TimestampTzGetDatum(changed_at);
    bool equal = false;
    int offset = partition_range_datum_bsearch(key->partsupfunc, key->partcollation, bounds, 1,
                                               &value, &equal);
    int index = bounds->indexes[offset + 1];
    if (index < 0)
        index = bounds->default_index;
    return index < 0 ? nullptr : table_open(partitions->oids[index], RowExclusiveLock);
}

static TimestampTz time_of_bound(PartitionBoundInfo bounds, int i) {
    switch (bounds->kind[i][0]) {
    case PARTITION_RANGE_DATUM_MINVALUE:
        return DT_NOBEGIN;
    case PARTITION_RANGE_DATUM_MAXVALUE:
        return DT_NOEND;
    case PARTITION_RANGE_DATUM_VALUE:
        break;
    }
    return DatumGetTimestampTz(bounds->datums[i][0]);
}

static Ranges ranges_of(Relation rel) {
    PartitionDesc partitions = partitions_of(rel);
    Ranges ranges = {nullptr, 0, InvalidOid};
    if (partitions->nparts == 0)
        return ranges;
    PartitionBoundInfo bounds = partitions->boundinfo;
    ranges.first = static_cast<Range*>(palloc(sizeof(Range) * partitions->nparts));
    for (int i = 1; i < bounds->ndatums; i++)
        if (bounds->indexes[i] >= 0)
            ranges.first[ranges.count++] = {partitions->oids[bounds->indexes[i]],
                                            time_of_bound(bounds, i - 1), time_of_bound(bounds, i)};
    if (bounds->default_index >= 0)
        ranges.fallback = partitions->oids[bounds->default_index];
    return ranges;
}

Oid table_to_trim(const History* history) {
    if (history->keep_versions > 0 || get_rel_relkind(history->table) != RELKIND_PARTITIONED_TABLE)
        return history->table;
    return get_default_partition_oid(history->table);
}

// --- Code of other roles -------------------------------------------------------------------------

void require_trusted_partition(Relation rel, Relation partition, int16 event) {
    if (partition->rd_rel->relkind != RELKIND_RELATION)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("partition \"%s\" of history table \"%s\" is not an ordinary table",
                               RelationGetRelationName(partition), RelationGetRelationName(rel)),
                        errhint("Detach it: ALTER TABLE %s DETACH PARTITION %s;",
                                qualified_name(rel), qualified_name(partition))));
    if (partition->rd_rel->relowner != rel->rd_rel->relowner)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("partition \"%s\" of history table \"%s\" belongs to another role",
                        RelationGetRelationName(partition), RelationGetRelationName(rel)),
                 errhint("Give it to the owner of the history table: ALTER TABLE %s OWNER TO %s;",
                         qualified_name(partition),
                         quote_identifier(GetUserNameFromId(rel->rd_rel->relowner, false)))));
    refuse_untrusted_triggers(partition, event);
}

void require_trusted_partitions(Relation rel, int16 event) {
    PartitionDesc partitions = partitions_of(rel);
    for (int i = 0; i < partitions->nparts; i++) {
        Relation partition = table_open(partitions->oids[i], RowExclusiveLock);
        require_trusted_partition(rel, partition, event);
        table_close(partition, NoLock);
    }
}

// --- What is missing -----------------------------------------------------------------------------

// What is left of the range without the partitions that exist. Empty: from == to.
static Range uncovered(Range range, const Ranges& existing) {
    for (const Range& each : existing) {
        if (each.from <= range.from && each.to > range.from)
            range.from = Min(each.to, range.to);
        else if (each.from > range.from && each.from < range.to)
            range.to = each.from;
    }
    return range;
}

// Periods are counted from 2000-01-01 UTC.
static TimestampTz start_of_period(int64 width, TimestampTz now) {
    int64 passed = now % width;
    return now - passed - (passed < 0 ? width : 0);
}

// The part of a period that is not over and has no partition yet.
static Range missing_range(const Ranges& existing, int64 width, TimestampTz now, int ahead) {
    TimestampTz from = start_of_period(width, now) + ahead * width;
    return uncovered({InvalidOid, Max(from, now), from + width}, existing);
}

static bool has_missing(const Ranges& existing, int64 width, TimestampTz now) {
    if (!OidIsValid(existing.fallback))
        return true;
    for (int ahead = 0; width > 0 && ahead <= kAhead; ahead++) {
        Range range = missing_range(existing, width, now, ahead);
        if (range.from < range.to)
            return true;
    }
    return false;
}

static bool is_past_retention(const Range& range, const History* history, TimestampTz now) {
    return history->keep_versions <= 0 && range.to <= now - history->keep_for;
}

static bool has_dropped(const Ranges& existing, const History* history, TimestampTz now) {
    for (const Range& each : existing)
        if (is_past_retention(each, history, now))
            return true;
    return false;
}

// When something will be missing or past retention.
static TimestampTz next_time(const Ranges& existing, const History* history, TimestampTz now) {
    TimestampTz next = DT_NOEND;
    if (history->partition_by > 0)
        next = start_of_period(history->partition_by, now) + history->partition_by;
    for (const Range& each : existing)
        if (history->keep_versions <= 0 && each.to < DT_NOEND - history->keep_for &&
            each.to + history->keep_for > now)
            next = Min(next, each.to + history->keep_for);
    return next;
}

// --- Creating and dropping -----------------------------------------------------------------------

enum class Attempted : uint8 { kDone, kLocked, kFailed };

// Runs body(). An error is a warning.
template <typename Body>
static Attempted attempt_work(const char* what, const char* table, Body&& body) {
    ErrorData* error = attempt([&] { with_spi(body); });
    if (error == nullptr)
        return Attempted::kDone;
    if (is_timeout(error))
        return Attempted::kLocked;
    ereport(WARNING, (errcode(error->sqlerrcode),
                      errmsg("partition \"%s\" was not %s: %s", table, what, error->message)));
    return Attempted::kFailed;
}

// In UTC, for a statement.
static char* utc_text(TimestampTz time) {
    struct pg_tm parts;
    fsec_t fraction;
    if (timestamp2tm(time, nullptr, &parts, &fraction, nullptr, nullptr) != 0)
        ereport(ERROR,
                (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE), errmsg("timestamp out of range")));
    char text[MAXDATELEN + 1];
    EncodeDateTime(&parts, fraction, false, 0, nullptr, USE_ISO_DATES, text);
    return psprintf("%s+00", text);
}

// p20260131, or p20260131T2359 for a time within the day.
static char* label_of(TimestampTz from) {
    struct pg_tm parts;
    fsec_t fraction;
    (void)timestamp2tm(from, nullptr, &parts, &fraction, nullptr, nullptr);
    const char* day = psprintf("p%04d%02d%02d", parts.tm_year, parts.tm_mon, parts.tm_mday);
    return from % USECS_PER_DAY == 0 ? pstrdup(day)
                                     : psprintf("%st%02d%02d", day, parts.tm_hour, parts.tm_min);
}

static Attempted create_partition(Oid history, const char* label, const char* bound) {
    Oid schema = get_rel_namespace(history);
    char* name = ChooseRelationName(get_rel_name(history), nullptr, label, schema, false);
    char* table = quote_qualified_identifier(get_namespace_name(schema), name);
    return attempt_work("created", name, [&] {
        run_command(
            psprintf("CREATE TABLE %s PARTITION OF %s %s", table, qualified_name(history), bound));
        give_to_owner(table, owner_of_table(history));
    });
}

static Attempted create_range(Oid history, const Range& range) {
    return create_partition(
        history, label_of(range.from),
        psprintf("FOR VALUES FROM ('%s') TO ('%s')", utc_text(range.from), utc_text(range.to)));
}

static Ranges current_ranges(Oid history) {
    Relation rel = table_open(history, NoLock);
    Ranges ranges = ranges_of(rel);
    table_close(rel, NoLock);
    return ranges;
}

bool create_partitions(Oid history, int64 width) {
    Ranges existing = current_ranges(history);
    bool all = true;
    auto count = [&all](Attempted attempted) { all = all && attempted == Attempted::kDone; };
    if (!OidIsValid(existing.fallback))
        count(create_partition(history, "default", "DEFAULT"));
    TimestampTz now = GetCurrentTimestamp();
    for (int ahead = 0; width > 0 && ahead <= kAhead; ahead++) {
        Range range = missing_range(existing, width, now, ahead);
        if (range.from < range.to)
            count(create_range(history, range));
    }
    return all;
}

// Returns whether all were dropped that retention does not keep.
static bool drop_partitions(const History* history, int32* dropped) {
    Ranges existing = current_ranges(history->table);
    TimestampTz now = GetCurrentTimestamp();
    bool all = true;
    for (const Range& each : existing) {
        if (!is_past_retention(each, history, now))
            continue;
        Attempted attempted = attempt_work("dropped", get_rel_name(each.partition), [&] {
            run_command(psprintf("DROP TABLE %s", qualified_name(each.partition)));
        });
        *dropped += attempted == Attempted::kDone;
        all = all && attempted == Attempted::kDone;
    }
    return all;
}

// Writers wait behind this lock, so it is not waited for long.
static bool lock_history(Oid history) {
    ErrorData* error = attempt([&] { LockRelationOid(history, AccessExclusiveLock); });
    if (error != nullptr && !is_timeout(error))
        ReThrowError(error);
    return error == nullptr;
}

// Returns whether all is done. The checks of the caller are repeated under the lock.
static bool do_work(const History* history, Oid owner, int32* dropped) {
    bool all = false;
    with_settings([&] {
        (void)set_config_option("lock_timeout", kLockTimeout, PGC_USERSET, PGC_S_SESSION,
                                GUC_ACTION_SAVE, true, 0, false);
        if (!lock_history(history->table) || owner_of_table(history->table) != owner)
            return;
        as_restricted(owner, 0, [&] {
            all = drop_partitions(history, dropped);
            all = create_partitions(history->table, history->partition_by) && all;
        });
    });
    return all;
}

static PartitionWork maintain(Relation rel, const History* history) {
    Relation entries = open_readable_entries(rel, history, AccessShareLock);
    Oid owner = entries->rd_rel->relowner;
    Ranges existing = ranges_of(entries);
    table_close(entries, NoLock);
    TimestampTz now = GetCurrentTimestamp();
    PartitionWork work = {0, DT_NOEND};
    bool all = true;
    if (has_missing(existing, history->partition_by, now) || has_dropped(existing, history, now)) {
        all = do_work(history, owner, &work.dropped);
        existing = current_ranges(history->table);
    }
    work.next = all ? next_time(existing, history, now) : now + kHistorySweepGap;
    return work;
}

PartitionWork maintain_partitions(Oid relid) {
    constexpr PartitionWork kNothing = {0, DT_NOEND};
    PartitionWork work = {0, GetCurrentTimestamp() + kHistorySweepGap};
    if (!lock_without_waiting(relid, AccessShareLock))
        return work;
    Relation rel = try_relation_open(relid, NoLock);
    if (rel == nullptr)
        return kNothing;
    const History* history = history_of(table_info(rel));
    if (history == nullptr || !has_retention(history) || !has_own_entries(rel, history) ||
        get_rel_relkind(history->table) != RELKIND_PARTITIONED_TABLE)
        work = kNothing;
    else if (lock_without_waiting(history->table, AccessShareLock))
        work = maintain(rel, history);
    relation_close(rel, NoLock);
    return work;
}

} // namespace interlock::history
