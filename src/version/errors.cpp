#include "version/errors.h"

#include "server/error.h"
#include "table/row.h"

namespace interlock::version {

// A client whose times have milliseconds, as JavaScript's Date, cuts what it reads: its next save
// conflicts again, and so for ever.
static bool is_cut_to_milliseconds(const Versioning* versioning, int64 expected, int64 stored) {
    constexpr int64 kMillisecond = USECS_PER_SEC / 1000;
    return !is_counter(versioning->kind) && !TIMESTAMP_NOT_FINITE(expected) &&
           !TIMESTAMP_NOT_FINITE(stored) && expected % kMillisecond == 0 &&
           stored - expected < kMillisecond && expected - stored < kMillisecond;
}

static const char* way_back_from_cut(Relation rel, const Versioning* versioning) {
    return psprintf(
        "The versions differ by less than a millisecond: the client has cut the time "
        "to milliseconds, and reading again does not help. Carry the version as text, "
        "or let the table's owner keep milliseconds only: ALTER TABLE %s ALTER COLUMN "
        "%s TYPE %s(3).",
        qualified_name(rel), quote_identifier(NameStr(versioning->name)),
        versioning->kind == TokenKind::kTimestamp ? "timestamp" : "timestamptz");
}

void raise_version_conflict(Relation rel, const TableInfo* info, const Key& key, int64 expected,
                            int64 stored, const char* way_back) {
    const Versioning* versioning = versioning_of(info);
    TokenKind kind = versioning->kind;
    if (is_cut_to_milliseconds(versioning, expected, stored))
        way_back = way_back_from_cut(rel, versioning);
    else if (way_back == nullptr)
        way_back =
            "Read the row again and repeat the change, or use try_versioned_update with "
            "on_conflict => 'merge' and the row that you read as base.";
    char* expected_json = token_to_json(kind, expected);
    char* stored_json = token_to_json(kind, stored);
    const char* shown = key_to_text(info, key);
    ereport(ERROR, (errcode(kVersionConflict),
                    errmsg("version conflict in table \"%s\": expected %s, found %s",
                           RelationGetRelationName(rel), expected_json, stored_json),
                    errdetail_internal("%s", json_object({{"table", shown_name(rel)},
                                                          {"key", nullptr, shown},
                                                          {"expected", nullptr, expected_json},
                                                          {"version", nullptr, stored_json}})),
                    errhint("%s", way_back)));
}

void raise_row_exists(Relation rel, const TableInfo* info, const Key& key, int64 stored) {
    char* version = token_to_json(versioning_of(info)->kind, stored);
    const char* shown = key_to_text(info, key);
    ereport(
        ERROR,
        (errcode(kVersionConflict),
         errmsg("version conflict in table \"%s\": expected no row, found version %s",
                RelationGetRelationName(rel), version),
         errdetail_internal("%s", json_object({{"table", shown_name(rel)},
                                               {"key", nullptr, shown},
                                               {"expected"},
                                               {"version", nullptr, version}})),
         errhint("To change the row, read it, and give its version as argument \"expected\".")));
}

void raise_version_set(Relation rel, const TableInfo* info, HeapTuple row, int64 stored,
                       const char* given) {
    const Versioning* versioning = versioning_of(info);
    const Bitmapset* readable = readable_columns(rel, row);
    bool may_show = bms_is_member(versioning->column, readable);
    const char* version = may_show ? token_to_json(versioning->kind, stored) : nullptr;
    const char* shown = may_show ? given : nullptr;
    const char* key = readable_key(info, readable, row);
    ereport(
        ERROR,
        (errcode(kVersionConflict),
         errmsg("version conflict in table \"%s\": column \"%s\" cannot be set to %s",
                RelationGetRelationName(rel), NameStr(versioning->name),
                may_show ? given : "this value"),
         errdetail_internal("%s", json_object({{"table", shown_name(rel)},
                                               {"key", nullptr, key},
                                               {"expected", nullptr, shown},
                                               {"version", nullptr, version}})),
         errhint(
             "The row has changed since it was read, or the writer sets the version itself. Read "
             "the row again, and leave the version to the server or set exactly the next one.")));
}

static const char* detail_of(const BlindWrite& write) {
    const Versioning* versioning = versioning_of(write.info);
    const Bitmapset* readable = readable_columns(write.rel, write.row);
    const char* version = nullptr;
    if (bms_is_member(versioning->column, readable)) {
        bool is_null;
        Datum value = heap_getattr(write.row, versioning->column, write.info->columns, &is_null);
        version = token_to_json(versioning->kind, token_of_datum(versioning->kind, value, is_null));
    }
    return json_object({{"table", shown_name(write.rel)},
                        {"key", nullptr, readable_key(write.info, readable, write.row)},
                        {"version", nullptr, version}});
}

void report_blind_write(const BlindWrite& write, int level) {
    const char* table = RelationGetRelationName(write.rel);
    const char* version = NameStr(versioning_of(write.info)->name);
    const char* detail = detail_of(write); // asks policies
    ereport(
        level,
        (errcode(kBlindUpdate),
         write.shared_column == nullptr
             ? errmsg("blind %s table \"%s\": the statement does not compare column \"%s\"",
                      write.deletes ? "delete from" : "update of", table, version)
             : errmsg("blind update of table \"%s\" changes shared column \"%s\": the statement "
                      "does not compare column \"%s\"",
                      table, write.shared_column, version),
         errdetail_internal("%s", detail),
         errhint("Compare the version that was read (AND %s = ...), use interlock.versioned_%s, or "
                 "call interlock.assert_version before it. If it is right for any version, add AND "
                 "interlock.any_version(%s).",
                 quote_identifier(version), write.deletes ? "delete" : "update",
                 quote_identifier(version))));
}

} // namespace interlock::version
