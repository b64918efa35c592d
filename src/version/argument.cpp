#include "version/argument.h"

#include "server/arguments.h"

namespace interlock {

namespace {

int64 token_of_text(TokenKind kind, char* token) {
    if (is_counter(kind))
        return DatumGetInt64(DirectFunctionCall1(int8in, CStringGetDatum(token)));
    Oid function, parameter;
    getTypeInputInfo(token_type(kind), &function, &parameter);
    return DatumGetInt64(OidInputFunctionCall(function, token, parameter, -1));
}

int64 parse_token(Relation rel, const Versioning* versioning, Datum value, Oid type) {
    TokenKind kind = versioning->kind;
    if (type == TEXTOID)
        return token_of_text(kind, TextDatumGetCString(value));
    if (!has_versions_as(versioning, type))
        ereport(
            ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH),
             errmsg("version column \"%s\" of table \"%s\" has type %s", NameStr(versioning->name),
                    RelationGetRelationName(rel), format_type_be(token_type(kind))),
             errhint("Give the expected version as %s.",
                     is_counter(kind) ? "a number" : "a timestamp with time zone, or as text")));
    if (kind == TokenKind::kTimestamp)
        value = DirectFunctionCall1(timestamptz_timestamp, value);
    return DatumGetInt64(value);
}

} // namespace

VersionArgument expected_version(const Arguments& arguments, int n, Relation rel,
                                 const Versioning* versioning) {
    Oid type = arguments.type(n);
    return {type, parse_token(rel, versioning, arguments.required(n, "expected"), type)};
}

Datum version_result(const Versioning* versioning, Oid type, int64 token) {
    TokenKind kind = versioning->kind;
    if (type == TEXTOID)
        return CStringGetTextDatum(token_to_text(kind, token));
    return kind == TokenKind::kTimestamp
               ? DirectFunctionCall1(timestamp_timestamptz, TimestampGetDatum(token))
               : Int64GetDatum(token);
}

bool is_shown_as_expected(const Versioning* versioning, const VersionArgument& expected,
                          int64 stored) {
    if (versioning->kind != TokenKind::kTimestamp || expected.type == TEXTOID)
        return false;
    auto shown = [](int64 token) {
        return DatumGetTimestampTz(
            DirectFunctionCall1(timestamp_timestamptz, TimestampGetDatum(token)));
    };
    return shown(stored) == shown(expected.token);
}

} // namespace interlock
