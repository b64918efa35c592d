#include "version/version.h"

#include "execution/expression.h"
#include "server/error.h"
#include "table/mechanism.h"
#include "table/row_values.h"

namespace interlock::version {

bool token_kind_of(Oid type, TokenKind* kind) {
    switch (type) {
    case INT4OID:
        *kind = TokenKind::kInteger;
        return true;
    case INT8OID:
        *kind = TokenKind::kBigint;
        return true;
    case TIMESTAMPOID:
        *kind = TokenKind::kTimestamp;
        return true;
    case TIMESTAMPTZOID:
        *kind = TokenKind::kTimestamptz;
        return true;
    default:
        return false;
    }
}

const Versioning* usable_versioning(Relation rel, const TableInfo* info) {
    const Versioning* versioning = versioning_of(info);
    require_own(rel, info, versioning, "enable_versioning");
    if (versioning->column == InvalidAttrNumber)
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("version column \"%s\" of table \"%s\" is gone or has another type",
                    NameStr(versioning->name), RelationGetRelationName(rel)),
             errhint("The table's owner calls interlock.enable_versioning again with the current "
                     "name of the column and the other settings, which SELECT "
                     "interlock.configuration(%s) shows.",
                     quote_literal_cstr(qualified_name(rel)))));
    if (info->distribution == Distribution::kReference && !is_counter(versioning->kind))
        refuse_distributed(rel, "a time as the version", kReferenceHint);
    return versioning;
}

const Versioning* require_versioning(Relation rel, const TableInfo* info) {
    if (versioning_of(info) == nullptr)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("table \"%s\" is not versioned", RelationGetRelationName(rel)),
                 errhint("Its owner can enable it: %s", call_for("enable_versioning", rel))));
    const Versioning* versioning = usable_versioning(rel, info);
    if (!trigger_fires(versioning->enabled))
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("versioning of table \"%s\" is off: its trigger does not fire in this session",
                    RelationGetRelationName(rel)),
             errhint("Enable the trigger and leave session_replication_role at origin; "
                     "interlock.advise() lists what is off.")));
    return versioning;
}

int64 token_of_datum(TokenKind kind, Datum value, bool is_null) {
    if (is_null)
        return is_counter(kind) ? 0 : DT_NOBEGIN;
    return kind == TokenKind::kInteger ? DatumGetInt32(value) : DatumGetInt64(value);
}

Oid token_type(TokenKind kind) {
    switch (kind) {
    case TokenKind::kInteger:
        return INT4OID;
    case TokenKind::kBigint:
        return INT8OID;
    case TokenKind::kTimestamp:
        return TIMESTAMPOID;
    case TokenKind::kTimestamptz:
        return TIMESTAMPTZOID;
    }
    pg_unreachable();
}

char* token_to_text(TokenKind kind, int64 token) {
    switch (kind) {
    case TokenKind::kTimestamp:
        return DatumGetCString(DirectFunctionCall1(timestamp_out, TimestampGetDatum(token)));
    case TokenKind::kTimestamptz:
        return DatumGetCString(DirectFunctionCall1(timestamptz_out, TimestampTzGetDatum(token)));
    default:
        return DatumGetCString(DirectFunctionCall1(int8out, Int64GetDatum(token)));
    }
}

char* token_to_json(TokenKind kind, int64 token) {
    char* text = token_to_text(kind, token);
    return is_counter(kind) ? text : psprintf("\"%s\"", text);
}

void set_version_columns(const Versioning* versioning, int64 token, Datum* values, bool* nulls) {
    if (is_counter(versioning->kind))
        values[0] = Int64GetDatum(token);
    else
        values[1] = TimestampTzGetDatum(
            versioning->kind == TokenKind::kTimestamp ? time_in_zone(token) : token);
    nulls[0] = !is_counter(versioning->kind);
    nulls[1] = !nulls[0];
}

void count_call(const TableInfo* info, bool is_conflict) {
    LineRef line = line_of(info, CountedKind::kVersioning);
    count(line, Counter::kCalls);
    if (is_conflict)
        count(line, Counter::kConflicts);
}

const Expression* has_version(Expressions* terms, const Versioning* versioning, int64 expected) {
    bool counter = is_counter(versioning->kind);
    Oid type = token_type(versioning->kind);
    const Expression* version = terms->column(versioning->column);
    if (versioning->nullable)
        version = terms->coalesce(
            version, counter ? terms->literal_number(type, 0)
                             : terms->literal(type, {Int64GetDatum(DT_NOBEGIN), false}));
    return terms->equal(version, terms->value(counter ? INT8OID : type, Int64GetDatum(expected)));
}

} // namespace interlock::version
