#include "history/partition.h"

#include "server/scope.h"
#include "server/stable_text.h"
#include "server/subtransaction.h"
#include "table/name.h"
#include "table/plan.h"
#include "table/restricted.h"

namespace interlock::history {

constexpr int kAhead = 2; // periods after the current one

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
           strcmp(NameStr(attribute->attname), "changed_at") == 0;
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

Ranges ranges_of(Relation rel) {
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

// --- Code of other roles -------------------------------------------------------------------------

void require_trusted_partition(Relation rel, Relation partition, int16 events) {
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
    refuse_untrusted_triggers(partition, events);
}

void require_trusted_partitions(Relation rel, int16 events) {
    if (!is_partitioned(rel))
        return;
    PartitionDesc partitions = partitions_of(rel);
    for (int i = 0; i < partitions->nparts; i++) {
        Relation partition = table_open(partitions->oids[i], RowExclusiveLock);
        require_trusted_partition(rel, partition, events);
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
TimestampTz start_of_period(int64 width, TimestampTz now) {
    int64 passed = now % width;
    return now - passed - (passed < 0 ? width : 0);
}

// The part of a period that is not over and has no partition yet.
static Range missing_range(const Ranges& existing, int64 width, TimestampTz now, int ahead) {
    TimestampTz from = start_of_period(width, now) + ahead * width;
    return uncovered({InvalidOid, Max(from, now), from + width}, existing);
}

bool has_missing(const Ranges& existing, int64 width, TimestampTz now) {
    if (!OidIsValid(existing.fallback))
        return true;
    for (int ahead = 0; width > 0 && ahead <= kAhead; ahead++) {
        Range range = missing_range(existing, width, now, ahead);
        if (range.from < range.to)
            return true;
    }
    return false;
}

// --- Creating and dropping -----------------------------------------------------------------------

// Runs body() and returns whether it succeeded. An error is a warning. A lock that another session
// holds is none.
template <typename Body>
static bool attempt_work(const char* what, const char* table, Body&& body) {
    ErrorData* error = attempt([&] { with_spi(body); });
    if (error != nullptr && !is_timeout(error))
        ereport(WARNING, (errcode(error->sqlerrcode),
                          errmsg("partition \"%s\" was not %s: %s", table, what, error->message)));
    return error == nullptr;
}

// p20260131, or p20260131t2359 for a time within the day.
static char* label_of(TimestampTz from) {
    struct pg_tm parts;
    fsec_t fraction;
    (void)timestamp2tm(from, nullptr, &parts, &fraction, nullptr, nullptr);
    const char* day = psprintf("p%04d%02d%02d", parts.tm_year, parts.tm_mon, parts.tm_mday);
    return from % USECS_PER_DAY == 0 ? pstrdup(day)
                                     : psprintf("%st%02d%02d", day, parts.tm_hour, parts.tm_min);
}

static bool create_partition(Oid history, const char* label, const char* bound) {
    Oid schema = get_rel_namespace(history);
    char* name = ChooseRelationName(get_rel_name(history), nullptr, label, schema, false);
    char* table = quote_qualified_identifier(get_namespace_name(schema), name);
    return attempt_work("created", name, [&] {
        run_command(
            psprintf("CREATE TABLE %s PARTITION OF %s %s", table, qualified_name(history), bound));
        give_to_owner(table, owner_of_table(history));
    });
}

static char* text_of(TimestampTz time) {
    return stable_text(TIMESTAMPTZOID, TimestampTzGetDatum(time));
}

static bool create_range(Oid history, const Range& range) {
    return create_partition(
        history, label_of(range.from),
        psprintf("FOR VALUES FROM ('%s') TO ('%s')", text_of(range.from), text_of(range.to)));
}

Ranges ranges_of(Oid history) {
    Relation rel = table_open(history, NoLock);
    Ranges ranges = ranges_of(rel);
    table_close(rel, NoLock);
    return ranges;
}

bool create_partitions(Oid history, int64 width) {
    Ranges existing = ranges_of(history);
    bool all = true;
    if (!OidIsValid(existing.fallback))
        all = create_partition(history, "default", "DEFAULT");
    TimestampTz now = GetCurrentTimestamp();
    for (int ahead = 0; width > 0 && ahead <= kAhead; ahead++) {
        Range range = missing_range(existing, width, now, ahead);
        if (range.from < range.to)
            all = create_range(history, range) && all;
    }
    return all;
}

bool drop_partition(Oid partition) {
    return attempt_work("dropped", get_rel_name(partition),
                        [&] { run_command(psprintf("DROP TABLE %s", qualified_name(partition))); });
}

void give_to_owner(const char* table, Oid owner) {
    if (owner != GetUserId()) // an administrator
        run_command(psprintf("ALTER TABLE %s OWNER TO %s", table,
                             quote_identifier(GetUserNameFromId(owner, false))));
    char* name = quote_literal_cstr(table);
    run_command(psprintf(
        "SELECT pg_catalog.format('REVOKE ALL ON %%s %%s FROM %%s CASCADE', CASE c.relkind WHEN "
        "'S' "
        "THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::pg_catalog.regclass, CASE WHEN r.oid IS NULL "
        "THEN 'PUBLIC' ELSE pg_catalog.quote_ident(r.rolname) END) FROM pg_catalog.pg_class c "
        "CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) a LEFT JOIN pg_catalog.pg_roles r "
        "ON r.oid OPERATOR(pg_catalog.=) a.grantee WHERE c.oid IN (%s::pg_catalog.regclass, "
        "pg_catalog.pg_get_serial_sequence(%s, 'id')::pg_catalog.regclass) AND a.grantee "
        "OPERATOR(pg_catalog.<>) c.relowner GROUP BY 1",
        name, name));
    SPITupleTable* commands = SPI_tuptable;
    for (uint64 i = 0, count = SPI_processed; i < count; i++)
        run_command(SPI_getvalue(commands->vals[i], commands->tupdesc, 1));
}

} // namespace interlock::history
