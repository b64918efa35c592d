#include "ownership/write_log.h"

#include "ownership/writer.h"
#include "server/result_row.h"
#include "server/transaction_end.h"
#include "sweeper/deadline.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "table/restricted.h"
#include "table/subscription.h"

namespace interlock::ownership {

// The columns of a line of interlock.write_log, from the second on.
constexpr int kLineColumns = 14;
constexpr const char* kColumnNames =
    "written_at, decision, table_name, table_owner, operation, key, columns, row_count, owner, "
    "writer, written_by, reason, stored, given";
constexpr Oid kColumnTypes[] = {TIMESTAMPTZOID, TEXTOID,      TEXTOID,  TEXTOID, TEXTOID,
                                JSONBOID,       TEXTARRAYOID, INT8OID,  TEXTOID, TEXTOID,
                                TEXTOID,        TEXTOID,      JSONBOID, JSONBOID};
static_assert(lengthof(kColumnTypes) == kLineColumns);

// So many lines of statements that are over may wait in one subtransaction.
constexpr int kMostLines = 64;

static List* lines = NIL; // in the transaction's context, oldest first
static WriteLine* latest = nullptr;

static void line_values(const WriteLine* line, Datum* values, bool* nulls);

extern "C" {
PG_FUNCTION_INFO_V1(list_unwritten_lines);

Datum list_unwritten_lines(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    ListCell* cell;
    foreach (cell, lines) {
        auto* line = static_cast<WriteLine*>(lfirst(cell));
        Oid owner = get_role_oid(line->table_owner, true);
        if (!OidIsValid(owner) || !has_privs_of_role(GetUserId(), owner))
            continue;
        Datum values[kLineColumns + 1] = {};
        bool nulls[kLineColumns + 1] = {true};
        line_values(line, values + 1, nulls + 1);
        add_result_row(output, values, nulls);
    }
    return 0;
}
}

static const char* decision_name(WriteDecision decision) {
    switch (decision) {
    case WriteDecision::kSuppressed:
        return "suppressed";
    case WriteDecision::kSkipped:
        return "skipped";
    case WriteDecision::kMerged:
        return "merged";
    case WriteDecision::kForced:
        return "forced";
    case WriteDecision::kBlind:
        return "blind";
    }
    pg_unreachable();
}

static void line_values(const WriteLine* line, Datum* values, bool* nulls) {
    auto text = [&](int i, const char* value) {
        nulls[i] = value == nullptr;
        if (value != nullptr)
            values[i] = CStringGetTextDatum(value);
    };
    auto optional = [&](int i, Datum value) {
        nulls[i] = value == 0;
        values[i] = value;
    };
    values[0] = TimestampTzGetDatum(line->started);
    nulls[0] = false;
    text(1, decision_name(line->group.decision));
    text(2, line->table);
    text(3, line->table_owner);
    text(4, line->group.operation);
    optional(5, line->count == 1 ? line->sample.key : 0);
    optional(6,
             line->columns == nullptr ? 0 : makeArrayResult(line->columns, CurrentMemoryContext));
    values[7] = Int64GetDatum(line->count);
    nulls[7] = false;
    text(8, line->group.owner);
    text(9, line->writer);
    text(10, line->written_by);
    text(11, line->sample.reason);
    optional(12, line->sample.stored);
    optional(13, line->sample.given);
}

static void write_insert(Statement* statement, Oid table, bool is_apart) {
    for (Oid type : kColumnTypes)
        (void)statement->parameter(type);
    const char* number = is_apart ? psprintf("$%d", statement->parameter(INT8OID)) : nullptr;
    statement->add("%s", insert_of_line(table, kColumnNames, kLineColumns, number));
}

static void insert_line(const WriteLine* line) {
    Oid table = own_table("write_log");
    writing_as_owner(table_open(table, RowExclusiveLock), TRIGGER_TYPE_INSERT, [&] {
        with_spi([&] {
            bool is_apart = is_subscribed(table);
            PlanShape shape = {table, PlanKind("write_log")};
            shape.subject = is_apart ? 1 : 0;
            TablePlan plan = plan_of(
                shape, [&](Statement* statement) { write_insert(statement, table, is_apart); });
            Datum values[kLineColumns] = {};
            bool nulls[kLineColumns];
            line_values(line, values, nulls);
            Parameters parameters(kLineColumns + 1);
            for (int i = 0; i < kLineColumns; i++)
                parameters.add(values[i], nulls[i]);
            if (is_apart)
                parameters.add(Int64GetDatum(number_apart()));
            run_plan(plan, parameters);
        });
    });
}

static void forget_line(WriteLine* line) {
    lines = list_delete_ptr(lines, line);
    if (latest == line)
        latest = nullptr;
    MemoryContextDelete(line->memory);
}

// At the end of a transaction or savepoint there is no statement whose snapshot could serve, and
// the transaction may have become read-only meanwhile. It may have dropped the extension, too.
static void write_line(WriteLine* line) {
    Oid schema = own_schema();
    if (OidIsValid(schema) && OidIsValid(get_relname_relid("write_log", schema))) {
        bool has_snapshot = ActiveSnapshotSet();
        if (!has_snapshot)
            PushActiveSnapshot(GetTransactionSnapshot());
        bool read_only = XactReadOnly;
        XactReadOnly = false;
        insert_line(line);
        XactReadOnly = read_only;
        if (!has_snapshot)
            PopActiveSnapshot();
        TimestampTz expiry = write_log_expiry(line->started);
        if (expiry != DT_NOEND)
            note_deadline(expiry);
    }
    forget_line(line);
}

// Calls visit(line) for the lines of this subtransaction and of those in it.
template <typename Visit>
static void each_line_from(SubTransactionId first, Visit&& visit) {
    List* present = list_copy(lines);
    ListCell* cell;
    foreach (cell, present) {
        auto* line = static_cast<WriteLine*>(lfirst(cell));
        if (line->subtransaction >= first)
            visit(line);
    }
    list_free(present);
}

static void end_transaction(XactEvent event, void*) {
    if (lines == NIL)
        return;
    if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
        each_line_from(TopSubTransactionId, write_line);
    else if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT ||
             event == XACT_EVENT_PREPARE) {
        lines = NIL;
        latest = nullptr;
    }
}

// Lines of an outer subtransaction stay: written in an inner one they could be rolled back alone.
static void end_subtransaction(SubXactEvent event, SubTransactionId ended, SubTransactionId,
                               void*) {
    if (lines == NIL)
        return;
    if (event == SUBXACT_EVENT_PRE_COMMIT_SUB)
        each_line_from(ended, write_line);
    else if (event == SUBXACT_EVENT_ABORT_SUB)
        each_line_from(ended, forget_line);
}

static bool same_text(const char* left, const char* right) {
    return left == right || (left != nullptr && right != nullptr && strcmp(left, right) == 0);
}

static bool is_line_of(const WriteLine* line, const WriteGroup& group,
                       SubTransactionId subtransaction, const char* writer) {
    return line->group.command == group.command && line->group.root == group.root &&
           line->group.decision == group.decision && line->group.operation == group.operation &&
           line->subtransaction == subtransaction && same_text(line->group.owner, group.owner) &&
           same_text(line->writer, writer);
}

// Lines of statements that are over are written to make room: those that are as deep in triggers as
// the present one, or deeper. One that is less deep waits for it.
static void make_room(const WriteGroup& group) {
    auto is_over = [&](const WriteLine* line) {
        return line->depth >= trigger_depth() && line->group.command != InvalidCommandId &&
               line->group.command != group.command;
    };
    SubTransactionId subtransaction = GetCurrentSubTransactionId();
    int over = 0;
    each_line_from(subtransaction, [&](const WriteLine* line) { over += is_over(line) ? 1 : 0; });
    if (over < kMostLines)
        return;
    each_line_from(subtransaction, [&](WriteLine* line) {
        if (is_over(line))
            write_line(line);
    });
}

static char* copy_text(const char* text) { return text == nullptr ? nullptr : pstrdup(text); }

static Datum copy_json(Datum json) {
    return json == 0 ? 0 : PointerGetDatum(PG_DETOAST_DATUM_COPY(json));
}

static WriteLine* make_line(const WriteGroup& group, const WriteSample& sample) {
    auto* line = static_cast<WriteLine*>(palloc0(sizeof(WriteLine)));
    line->memory = CurrentMemoryContext;
    line->group = group;
    line->group.owner = copy_text(group.owner);
    line->sample = {copy_json(sample.key), copy_json(sample.stored), copy_json(sample.given),
                    copy_text(sample.reason)};
    line->subtransaction = GetCurrentSubTransactionId();
    line->depth = trigger_depth();
    line->started = GetCurrentTimestamp();
    line->table = qualified_name(group.root);
    line->table_owner = GetUserNameFromId(owner_of_table(group.root), false);
    line->written_by = GetUserNameFromId(GetUserId(), false);
    line->writer = current_writer().name;
    return line;
}

static bool has_column(const WriteLine* line, const char* name) {
    for (int i = 0; line->columns != nullptr && i < line->columns->nelems; i++) {
        auto* other = reinterpret_cast<text*>(DatumGetPointer(line->columns->dvalues[i]));
        if (VARSIZE_ANY_EXHDR(other) == strlen(name) &&
            memcmp(VARDATA_ANY(other), name, strlen(name)) == 0)
            return true;
    }
    return false;
}

static SeenColumns* seen_columns(WriteLine* line, Oid relid) {
    for (SeenColumns* seen = line->seen; seen != nullptr; seen = seen->next)
        if (seen->relid == relid)
            return seen;
    auto* seen =
        static_cast<SeenColumns*>(MemoryContextAllocZero(line->memory, sizeof(SeenColumns)));
    seen->relid = relid;
    seen->next = line->seen;
    line->seen = seen;
    return seen;
}

WriteLine* find_line(const WriteGroup& group) {
    SubTransactionId subtransaction = GetCurrentSubTransactionId();
    const char* writer = current_writer().name;
    if (latest != nullptr && is_line_of(latest, group, subtransaction, writer))
        return latest;
    for (int i = list_length(lines) - 1; i >= 0; i--) {
        auto* line = static_cast<WriteLine*>(list_nth(lines, i));
        if (is_line_of(line, group, subtransaction, writer))
            return latest = line;
    }
    return nullptr;
}

WriteLine* new_line(const WriteGroup& group, const WriteSample& sample) {
    static bool registered = false;
    register_once(&registered, end_transaction, end_subtransaction);
    make_room(group);
    MemoryContext memory =
        AllocSetContextCreate(TopTransactionContext, "interlock write line", ALLOCSET_SMALL_SIZES);
    WriteLine* line = in_context(memory, [&] { return make_line(group, sample); });
    lines = in_context(TopTransactionContext, [&] { return lappend(lines, line); });
    return latest = line;
}

const Bitmapset* columns_seen(const WriteLine* line, Oid relid) {
    for (const SeenColumns* seen = line->seen; seen != nullptr; seen = seen->next)
        if (seen->relid == relid)
            return seen->columns;
    return nullptr;
}

void add_columns(WriteLine* line, Relation rel, const Bitmapset* columns) {
    if (bms_is_subset(columns, columns_seen(line, RelationGetRelid(rel))))
        return;
    SeenColumns* seen = seen_columns(line, RelationGetRelid(rel));
    seen->columns = in_context(line->memory, [&] {
        if (line->columns == nullptr) // not in a context of its own: it is read more than once
            line->columns = initArrayResult(TEXTOID, line->memory, false);
        for (int column = -1; (column = bms_next_member(columns, column)) >= 0;) {
            const char* name = NameStr(TupleDescAttr(RelationGetDescr(rel), column - 1)->attname);
            if (!has_column(line, name))
                line->columns = accumArrayResult(line->columns, CStringGetTextDatum(name), false,
                                                 TEXTOID, line->memory);
        }
        return bms_add_members(seen->columns, columns);
    });
}

void log_row(const WriteGroup& group, const WriteSample& sample, Relation rel,
             const Bitmapset* columns) {
    WriteLine* line = new_line(group, sample);
    line->count = 1;
    add_columns(line, rel, columns);
    write_line(line);
}

CommandId writing_command(const TriggerData* trigger) {
    if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
        return HeapTupleHeaderGetCmax(trigger->tg_trigtuple->t_data);
    HeapTuple row =
        TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple : trigger->tg_trigtuple;
    if (HeapTupleHeaderXminFrozen(row->t_data)) // COPY FREEZE: of no transaction any more
        return HeapTupleHeaderGetRawCommandId(row->t_data);
    return HeapTupleHeaderGetCmin(row->t_data);
}

} // namespace interlock::ownership
