// The trigger that requires a lease of every writer.

#include "lease/argument.h"
#include "lease/errors.h"
#include "lease/lease.h"
#include "lease/path.h"
#include "lease/require.h"
#include "server/error.h"
#include "server/stable_text.h"
#include "table/mechanism.h"
#include "table/row.h"

namespace interlock::lease {

static const LeaseRequirement* requirement_of(Relation rel, const Trigger* trigger);
static bool changes_any(const TriggerData* trigger, const Bitmapset* columns);
static void demand_lease(Relation rel, const LeaseRequirement* requirement, HeapTuple row);

extern "C" {
PG_FUNCTION_INFO_V1(lease_trigger);

Datum lease_trigger(PG_FUNCTION_ARGS) {
    TriggerData* trigger = row_trigger(fcinfo, "lease_trigger", TRIGGER_EVENT_AFTER);
    if (fires_in_restore(trigger))
        return 0;
    Relation rel = trigger->tg_relation;
    const LeaseRequirement* requirement = requirement_of(rel, trigger->tg_trigger);
    if (!TRIGGER_FIRED_BY_UPDATE(trigger->tg_event)) {
        demand_lease(rel, requirement, trigger->tg_trigtuple);
        return 0;
    }
    bool moves = changes_any(trigger, requirement->key_columns);
    if (moves)
        demand_lease(rel, requirement, trigger->tg_trigtuple);
    if (moves || requirement->columns == nullptr || changes_any(trigger, requirement->columns))
        demand_lease(rel, requirement, trigger->tg_newtuple);
    return 0;
}
}

static const LeaseRequirement* requirement_of(Relation rel, const Trigger* trigger) {
    const TableInfo* info = table_info(rel);
    const LeaseRequirement* found = nullptr;
    for (const LeaseRequirement& requirement : requirements_of(info))
        if (requirement.trigger_oid == trigger->tgoid)
            found = &requirement;
    require_own(rel, info, found, "require_lease");
    if (found->fits)
        return found;
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("the columns of table \"%s\" do not match the lease it requires, \"%s\"",
                RelationGetRelationName(rel), trigger->tgargs[0]),
         errhint(
             "A column was renamed, dropped or changed in type. Call interlock.unrequire_lease, "
             "then interlock.require_lease with the current names.")));
}

static bool changes_any(const TriggerData* trigger, const Bitmapset* columns) {
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;)
        if (!same_value(RelationGetDescr(trigger->tg_relation), trigger->tg_trigtuple,
                        trigger->tg_newtuple, column))
            return true;
    return false;
}

// As key_path() prints it: the output function of the other types has nothing else to say.
static char* value_text(const TemplatePiece& piece, Datum value) {
    switch (piece.type) {
    case BOOLOID:
    case BPCHAROID:
    case DATEOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID:
        return stable_text(piece.type, value);
    default:
        return OutputFunctionCall(const_cast<FmgrInfo*>(&piece.output), value);
    }
}

[[noreturn]] static void refuse_value(Relation rel, const TemplatePiece& piece, int sqlstate,
                                      const char* why) {
    ereport(ERROR, (errcode(sqlstate),
                    errmsg("cannot build the lease key of a row of table \"%s\": column \"%s\" %s",
                           RelationGetRelationName(rel), piece.name, why)));
}

static void add_value(StringInfo key, Relation rel, const TemplatePiece& piece, HeapTuple row) {
    bool is_null;
    Datum value = heap_getattr(row, piece.column, RelationGetDescr(rel), &is_null);
    if (is_null)
        refuse_value(rel, piece, ERRCODE_NULL_VALUE_NOT_ALLOWED, "is null");
    const char* text = value_text(piece, value);
    if (strlen(text) > kMaxLeaseKeyBytes)
        refuse_value(rel, piece, ERRCODE_INVALID_PARAMETER_VALUE, "is too long");
    // A slash would make it a path below another row's key, whose lease would do.
    append_level(key, text);
}

// lease_key_argument would show the key.
static void refuse_empty_level(Relation rel, const char* key, size_t length) {
    if (count_levels(key, length) > 0)
        return;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("cannot build the lease key of a row of table \"%s\": a level is empty",
                           RelationGetRelationName(rel)),
                    errhint("A column of its key is empty.")));
}

static LeaseKey key_of_row(Relation rel, const LeaseRequirement* requirement, HeapTuple row) {
    StringInfoData key;
    initStringInfo(&key);
    appendStringInfoSpaces(&key, VARHDRSZ);
    for (int i = 0; i < requirement->key.count; i++) {
        const TemplatePiece& piece = requirement->key.pieces[i];
        appendStringInfoString(&key, piece.text);
        if (piece.name != nullptr)
            add_value(&key, rel, piece, row);
    }
    refuse_empty_level(rel, key.data + VARHDRSZ, key.len - VARHDRSZ);
    if (key.len - VARHDRSZ > static_cast<int>(kMaxLeaseKeyBytes))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("cannot build the lease key of a row of table \"%s\": it is too long",
                        RelationGetRelationName(rel)),
                 errhint("A lease key has at most %zu bytes.", kMaxLeaseKeyBytes)));
    SET_VARSIZE(key.data, key.len);
    return lease_key_argument(reinterpret_cast<text*>(key.data));
}

static void demand_lease(Relation rel, const LeaseRequirement* requirement, HeapTuple row) {
    LeaseKey key = key_of_row(rel, requirement, row);
    LineRef line = line_of(table_info(rel), CountedKind::kRequireLease);
    count(line, Counter::kCalls);
    if (has_pinned(key.bytes, key.length))
        return;
    count(line, Counter::kRefusals);
    bool may_show = bms_is_subset(requirement->key_columns, readable_columns(rel, row));
    raise_lease_needed(rel, may_show ? pnstrdup(key.bytes, key.length) : nullptr);
}

// Also whether it can be what it was declared to be.
static bool find_stored(TupleDesc columns, const char* name, AttrNumber* column) {
    *column = find_attribute(columns, name);
    return *column != InvalidAttrNumber && is_stored(TupleDescAttr(columns, *column - 1));
}

static bool load_piece(TupleDesc columns, TemplatePiece* piece) {
    if (!find_stored(columns, piece->name, &piece->column))
        return false;
    piece->type = getBaseType(TupleDescAttr(columns, piece->column - 1)->atttypid);
    if (!prints_alike(piece->type))
        return false;
    Oid output;
    bool is_varlena;
    getTypeOutputInfo(piece->type, &output, &is_varlena);
    fmgr_info_cxt(output, &piece->output, CurrentMemoryContext);
    return true;
}

LeaseRequirement load_requirement(const TableInfo* info, const Trigger* trigger) {
    LeaseRequirement requirement = {};
    static_cast<OwnTrigger&>(requirement) = own_trigger(info->relid, trigger);
    LeaseSettings settings;
    requirement.well_formed = read_settings(trigger, &settings);
    if (!requirement.well_formed)
        return requirement;
    requirement.fits = true;
    requirement.key = settings.pieces;
    for (int i = 0; i < requirement.key.count; i++) {
        TemplatePiece* piece = &requirement.key.pieces[i];
        if (piece->name == nullptr)
            continue;
        if (load_piece(info->columns, piece))
            requirement.key_columns = bms_add_member(requirement.key_columns, piece->column);
        else
            requirement.fits = false;
    }
    for (const char* name : settings.columns) {
        AttrNumber column;
        if (find_stored(info->columns, name, &column))
            requirement.columns = bms_add_member(requirement.columns, column);
        else
            requirement.fits = false;
    }
    return requirement;
}

} // namespace interlock::lease
