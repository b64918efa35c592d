#include "write_log.h"

#include "own_table.h"
#include "plan.h"
#include "sweeper_state.h"
#include "writer.h"

using namespace interlock;

namespace {

// What a line is in interlock.write_log, from its second column on.
constexpr int kLineColumns = 13;
constexpr const char* kColumnNames =
    "written_at, decision, table_name, operation, key, columns, row_count, owner, writer, "
    "written_by, reason, stored, given";
constexpr Oid kColumnTypes[kLineColumns] = {TIMESTAMPTZOID, TEXTOID,  TEXTOID, TEXTOID, JSONBOID,
                                            TEXTARRAYOID,   INT8OID,  TEXTOID, TEXTOID, TEXTOID,
                                            TEXTOID,        JSONBOID, JSONBOID};

// So many lines of one subtransaction wait at most.
constexpr int kMostLines = 64;

List* lines = NIL; // in the transaction's context, oldest first
WriteLine* latest = nullptr;

void line_values(const WriteLine* line, Datum* values, bool* nulls);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(list_unwritten_lines);

Datum list_unwritten_lines(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    ListCell* cell;
    foreach (cell, lines) {
        Datum values[kLineColumns + 1] = {};
        bool nulls[kLineColumns + 1] = {true};
        line_values(static_cast<WriteLine*>(lfirst(cell)), values + 1, nulls + 1);
        tuplestore_putvalues(output->setResult, output->setDesc, values, nulls);
    }
    return 0;
}
}

namespace {

const char* decision_name(WriteDecision decision) {
    switch (decision) {
    case WriteDecision::kSuppressed:
        return "suppressed";
    case WriteDecision::kSkipped:
        return "skipped";
    case WriteDecision::kMerged:
        return "merged";
    case WriteDecision::kForced:
        return "forced";
    }
    pg_unreachable();
}

void line_values(const WriteLine* line, Datum* values, bool* nulls) {
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
    text(1, decision_name(line->statement.decision));
    text(2, line->table);
    text(3, line->statement.operation);
    optional(4, line->count == 1 ? line->key : 0);
    optional(5,
             line->columns == nullptr ? 0 : makeArrayResult(line->columns, CurrentMemoryContext));
    values[6] = Int64GetDatum(line->count);
    nulls[6] = false;
    text(7, line->owner);
    text(8, line->writer);
    text(9, line->written_by);
    text(10, line->reason);
    optional(11, line->stored);
    optional(12, line->given);
}

void write_insert(Statement* statement) {
    statement->add("INSERT INTO interlock.write_log (%s) VALUES (", kColumnNames);
    for (int i = 0; i < kLineColumns; i++)
        statement->add("%s$%d", i > 0 ? ", " : "", statement->parameter(kColumnTypes[i]));
    statement->add(")");
}

void insert_line(const WriteLine* line) {
    Oid table = own_table("write_log");
    as_owner_of(table, [&] {
        with_spi([&] {
            SPIPlanPtr plan = plan_of({table, PlanKind::kWriteLog},
                                      [](Statement* statement) { write_insert(statement); });
            Datum values[kLineColumns] = {};
            bool nulls[kLineColumns];
            line_values(line, values, nulls);
            Parameters parameters(kLineColumns);
            for (int i = 0; i < kLineColumns; i++)
                parameters.add(values[i], nulls[i]);
            run_plan(plan, parameters);
        });
    });
}

void forget_line(WriteLine* line) {
    lines = list_delete_ptr(lines, line);
    if (latest == line)
        latest = nullptr;
    MemoryContextDelete(line->memory);
}

// Calls visit(line) for the lines of this subtransaction and of those in it.
template <typename Visit>
void each_line_from(SubTransactionId first, Visit&& visit) {
    List* present = list_copy(lines);
    ListCell* cell;
    foreach (cell, present) {
        auto* line = static_cast<WriteLine*>(lfirst(cell));
        if (line->subtransaction >= first)
            visit(line);
    }
    list_free(present);
}

void end_transaction(XactEvent event, void*) {
    if (lines == NIL)
        return;
    if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
        each_line_from(TopSubTransactionId, write_line);
    else if (event == XACT_EVENT_ABORT) {
        lines = NIL;
        latest = nullptr;
    }
}

// Lines of an outer subtransaction stay: written in an inner one they could be rolled back alone.
void end_subtransaction(SubXactEvent event, SubTransactionId ended, SubTransactionId, void*) {
    if (lines == NIL)
        return;
    if (event == SUBXACT_EVENT_PRE_COMMIT_SUB)
        each_line_from(ended, write_line);
    else if (event == SUBXACT_EVENT_ABORT_SUB)
        each_line_from(ended, forget_line);
}

void register_callbacks() {
    static bool registered = false;
    if (registered)
        return;
    RegisterXactCallback(end_transaction, nullptr);
    RegisterSubXactCallback(end_subtransaction, nullptr);
    registered = true;
}

bool is_line_of(const WriteLine* line, const WriteStatement& statement,
                SubTransactionId subtransaction) {
    return line->statement.command == statement.command && line->statement.root == statement.root &&
           line->statement.decision == statement.decision &&
           line->statement.operation == statement.operation &&
           line->subtransaction == subtransaction;
}

WriteLine* find_line(const WriteStatement& statement, SubTransactionId subtransaction) {
    if (latest != nullptr && is_line_of(latest, statement, subtransaction))
        return latest;
    for (int i = list_length(lines) - 1; i >= 0; i--) {
        auto* line = static_cast<WriteLine*>(list_nth(lines, i));
        if (is_line_of(line, statement, subtransaction))
            return line;
    }
    return nullptr;
}

// Statements that are over are the oldest, so those are written to make room.
void make_room(SubTransactionId subtransaction) {
    int waiting = 0;
    each_line_from(subtransaction, [&](WriteLine*) { waiting++; });
    if (waiting < kMostLines)
        return;
    int surplus = kMostLines / 2;
    each_line_from(subtransaction, [&](WriteLine* line) {
        if (surplus-- > 0)
            write_line(line);
    });
}

WriteLine* new_line(const WriteStatement& statement, SubTransactionId subtransaction) {
    MemoryContext memory =
        AllocSetContextCreate(TopTransactionContext, "interlock write line", ALLOCSET_SMALL_SIZES);
    return in_context(memory, [&] {
        auto* line = static_cast<WriteLine*>(palloc0(sizeof(WriteLine)));
        line->memory = memory;
        line->statement = statement;
        line->subtransaction = subtransaction;
        line->started = GetCurrentTimestamp();
        line->table = qualified_name(statement.root);
        line->written_by = GetUserNameFromId(GetUserId(), false);
        const char* writer = current_writer().name;
        line->writer = writer == nullptr ? nullptr : pstrdup(writer);
        return line;
    });
}

bool has_column(const WriteLine* line, const char* name) {
    for (int i = 0; line->columns != nullptr && i < line->columns->nelems; i++)
        if (strcmp(TextDatumGetCString(line->columns->dvalues[i]), name) == 0)
            return true;
    return false;
}

} // namespace

namespace interlock {

WriteLine* count_writes(const WriteStatement& statement, int64 rows, bool* is_new) {
    SubTransactionId subtransaction = GetCurrentSubTransactionId();
    WriteLine* line = find_line(statement, subtransaction);
    *is_new = line == nullptr;
    if (line == nullptr) {
        register_callbacks();
        make_room(subtransaction);
        line = new_line(statement, subtransaction);
        lines = in_context(TopTransactionContext, [&] { return lappend(lines, line); });
    }
    line->count += rows;
    latest = line;
    return line;
}

void add_columns(WriteLine* line, Relation rel, const Bitmapset* columns) {
    if (line->leaf != RelationGetRelid(rel)) {
        line->leaf = RelationGetRelid(rel);
        line->seen = nullptr;
    }
    if (bms_is_subset(columns, line->seen))
        return;
    in_context(line->memory, [&] {
        if (line->columns == nullptr) // not in a context of its own: it is read more than once
            line->columns = initArrayResult(TEXTOID, line->memory, false);
        for (int column = -1; (column = bms_next_member(columns, column)) >= 0;) {
            const char* name = NameStr(TupleDescAttr(RelationGetDescr(rel), column - 1)->attname);
            if (!has_column(line, name))
                line->columns = accumArrayResult(line->columns, CStringGetTextDatum(name), false,
                                                 TEXTOID, line->memory);
        }
        return line->seen = bms_add_members(line->seen, columns);
    });
}

// At the end of a transaction or savepoint there is no statement whose snapshot could serve.
void write_line(WriteLine* line) {
    bool has_snapshot = ActiveSnapshotSet();
    if (!has_snapshot)
        PushActiveSnapshot(GetTransactionSnapshot());
    insert_line(line);
    TimestampTz expiry = write_log_expiry(line->started);
    if (expiry != DT_NOEND)
        note_deadline(expiry);
    if (!has_snapshot)
        PopActiveSnapshot();
    forget_line(line);
}

CommandId writing_command(const TriggerData* trigger) {
    if (TRIGGER_FIRED_BEFORE(trigger->tg_event))
        return GetCurrentCommandId(false);
    if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
        return HeapTupleHeaderGetCmax(trigger->tg_trigtuple->t_data);
    HeapTuple row =
        TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple : trigger->tg_trigtuple;
    return HeapTupleHeaderGetCmin(row->t_data);
}

} // namespace interlock
