#include "version/argument.h"

#include "server/arguments.h"
#include "server/error.h"
#include "table/row_values.h"

namespace interlock::version {

static int64 token_of_text(TokenKind kind, char* token) {
    if (is_counter(kind))
        return DatumGetInt64(DirectFunctionCall1(int8in, CStringGetDatum(token)));
    Oid function, parameter;
    getTypeInputInfo(token_type(kind), &function, &parameter);
    return DatumGetInt64(OidInputFunctionCall(function, token, parameter, -1));
}

static int hint_type(const Versioning* versioning) {
    return errhint(
        "Give the expected version as %s.",
        is_counter(versioning->kind) ? "a number" : "a timestamp with time zone, or as text");
}

static void require_type(Relation rel, const Versioning* versioning, Oid type) {
    if (has_versions_as(versioning, type))
        return;
    ereport(ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH),
             errmsg("version column \"%s\" of table \"%s\" has type %s", NameStr(versioning->name),
                    RelationGetRelationName(rel), format_type_be(token_type(versioning->kind))),
             hint_type(versioning)));
}

static int64 parse_token(const Versioning* versioning, Datum value, Oid type) {
    if (type == TEXTOID)
        return with_hint(
            [versioning] { hint_type(versioning); },
            [&] { return token_of_text(versioning->kind, TextDatumGetCString(value)); });
    if (versioning->kind == TokenKind::kTimestamp)
        value = DirectFunctionCall1(timestamptz_timestamp, value);
    return DatumGetInt64(value);
}

[[noreturn]] static void raise_nothing_expected(const Versioning* versioning) {
    ereport(
        ERROR,
        (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("argument \"expected\" must not be null"),
         errhint("Give the version that was read with the row%s. interlock.versioned_upsert "
                 "takes null for a row that must not exist.",
                 is_counter(versioning->kind) ? "" : ", or '-infinity' if it was null")));
}

VersionArgument expected_version(const Arguments& arguments, int n, Relation rel,
                                 const Versioning* versioning) {
    if (arguments.is_null(n))
        raise_nothing_expected(versioning);
    return expected_version_or_null(arguments, n, rel, versioning);
}

VersionArgument expected_version_or_null(const Arguments& arguments, int n, Relation rel,
                                         const Versioning* versioning) {
    Oid type = arguments.type(n);
    require_type(rel, versioning, type);
    if (arguments.is_null(n))
        return {type, 0, true};
    return {type, parse_token(versioning, arguments.value(n), type)};
}

Datum version_result(const Versioning* versioning, Oid type, int64 token) {
    TokenKind kind = versioning->kind;
    if (type == TEXTOID)
        return CStringGetTextDatum(token_to_text(kind, token));
    return kind == TokenKind::kTimestamp ? TimestampTzGetDatum(time_in_zone(token))
                                         : Int64GetDatum(token);
}

bool is_shown_as_expected(const Versioning* versioning, const VersionArgument& expected,
                          int64 stored) {
    if (versioning->kind != TokenKind::kTimestamp || expected.type == TEXTOID)
        return false;
    return time_in_zone(stored) == time_in_zone(expected.token);
}

} // namespace interlock::version
