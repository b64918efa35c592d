// save_row and try_save_row: the changes of a row's holder, and the end or the new deadline of its
// marker, in one write.

#include "execution/stored_row.h"
#include "marker/call.h"
#include "marker/errors.h"
#include "server/arguments.h"
#include "server/result_row.h"
#include "version/argument.h"
#include "version/errors.h"
#include "version/update.h"

namespace interlock::marker {

constexpr int kAttempts = 3;

namespace {

struct SaveCall {
    MarkedRow row;
    const version::Versioning* versioning; // null: the table has no versions
    bool has_expected;
    version::VersionArgument expected; // its type also without one
    Changes changes;
    bool keep;
};

enum class Outcome : uint8 { kSaved, kConflict, kLost, kNotFound };

struct Saved {
    Outcome outcome;
    int64 version; // the new one, or the current one in a conflict
    Look found;    // the row of a conflict, or of a marker that is lost
};

} // namespace

static SaveCall open_save(const Arguments& arguments);
static Saved save(SaveCall* call);
[[noreturn]] static void raise_unsaved(const SaveCall& call, const Saved& saved);
static bool returns_version(const SaveCall& call);
static Datum report(FunctionCallInfo fcinfo, const SaveCall& call, const Saved& saved);

extern "C" {
PG_FUNCTION_INFO_V1(save_row);
PG_FUNCTION_INFO_V1(try_save_row);

// save_row(rel, key, holder, changes, expected, keep) -> the new version
Datum save_row(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    SaveCall call = open_save(arguments);
    Saved saved = save(&call);
    if (saved.outcome != Outcome::kSaved)
        raise_unsaved(call, saved);
    count_call(call.row);
    close_table(call.row.rel);
    if (!returns_version(call))
        PG_RETURN_NULL();
    return version::version_result(call.versioning, call.expected.type, saved.version);
}

// try_save_row(rel, key, holder, changes, expected, keep) -> (outcome, version, current)
Datum try_save_row(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    SaveCall call = open_save(arguments);
    return report(fcinfo, call, save(&call));
}
}

static SaveCall open_save(const Arguments& arguments) {
    SaveCall call = {};
    call.row = open_call(arguments, true);
    call.keep = arguments.boolean(5, "keep");
    call.has_expected = !arguments.is_null(4);
    if (call.has_expected || version::versioning_of(call.row.info) != nullptr)
        call.versioning = version::require_versioning(call.row.rel, call.row.info);
    if (call.has_expected)
        call.expected = version::expected_version(arguments, 4, call.row.rel, call.versioning);
    else
        call.expected.type = arguments.type(4);
    Bitmapset* managed = bms_copy(call.row.marker->attnums);
    if (call.versioning != nullptr)
        managed = bms_add_member(managed, call.versioning->column);
    call.changes = parse_changes(call.row.rel, call.row.info, call.row.key,
                                 changes_json(arguments, 3), managed);
    return call;
}

// The version of the row; false if there is no row, or no version.
static bool read_version(const SaveCall& call, int64* version) {
    if (call.versioning == nullptr)
        return false;
    StoredRow row = read_row(call.row.rel, call.row.info, call.row.key,
                             bms_make_singleton(call.versioning->column));
    if (row.found)
        *version = version::stored_token(row, call.versioning);
    return row.found;
}

// Whether the row still has the expected version. A version that only looks the same to the caller
// is expected afterwards.
static bool has_expected_version(SaveCall* call, int64* stored) {
    if (!call->has_expected || !read_version(*call, stored) || *stored == call->expected.token)
        return true;
    if (!version::is_shown_as_expected(call->versioning, call->expected, *stored))
        return false;
    call->expected.token = *stored;
    return true;
}

static Saved save(SaveCall* call) {
    for (int i = 0; i < kAttempts; i++) {
        Saved saved = {};
        bool was_suppressed = false;
        if (save_marked(call->row, call->changes,
                        call->has_expected ? &call->expected.token : nullptr, call->keep,
                        &saved.version, &was_suppressed))
            return saved;
        saved.found = look(call->row);
        if (!saved.found.found)
            return {Outcome::kNotFound, 0, saved.found};
        if (!is_held(call->row, saved.found))
            return {Outcome::kLost, 0, saved.found};
        if (!has_expected_version(call, &saved.version))
            return {Outcome::kConflict, saved.version, saved.found};
        if (was_suppressed)
            break;
    }
    raise_suppressed(call->row.rel);
}

static void raise_unsaved(const SaveCall& call, const Saved& saved) {
    const MarkedRow& row = call.row;
    if (saved.outcome == Outcome::kNotFound)
        raise_no_such_row(row.rel, row.info, row.key);
    if (saved.outcome == Outcome::kLost)
        raise_not_held(row, saved.found);
    count_call(row);
    version::count_call(row.info, true);
    version::raise_version_conflict(row.rel, row.info, *saved.found.key, call.expected.token,
                                    saved.version,
                                    "The marker is still held. Read the row, and call save_row "
                                    "again with its version, or unlock_row to give up.");
}

static bool returns_version(const SaveCall& call) {
    return call.versioning != nullptr &&
           version::has_versions_as(call.versioning, call.expected.type);
}

static const char* outcome_name(Outcome outcome) {
    switch (outcome) {
    case Outcome::kSaved:
        return "saved";
    case Outcome::kConflict:
        return "conflict";
    case Outcome::kLost:
        return "lost";
    case Outcome::kNotFound:
        return "not_found";
    }
    pg_unreachable();
}

static void count_save(const SaveCall& call, Outcome outcome) {
    count_call(call.row);
    if (outcome == Outcome::kLost)
        count(call.row.info, CountedKind::kMarker, Counter::kRefusals);
    if (outcome == Outcome::kConflict)
        version::count_call(call.row.info, true);
}

// (outcome, version, current): the row is shown after a conflict, and when the marker is lost, as
// far as the caller may read it.
static Datum report(FunctionCallInfo fcinfo, const SaveCall& call, const Saved& saved) {
    const MarkedRow& row = call.row;
    count_save(call, saved.outcome);
    Outcome outcome = saved.outcome;
    int64 version = saved.version;
    StoredRow current = {};
    if (outcome == Outcome::kConflict || outcome == Outcome::kLost) {
        Bitmapset* shown = readable_columns(row.rel);
        if (call.versioning != nullptr)
            shown = bms_add_member(shown, call.versioning->column);
        current = read_row(row.rel, row.info, row.key, shown);
        if (!current.found) // deleted since the attempt
            outcome = Outcome::kNotFound;
        else if (call.versioning != nullptr)
            version = version::stored_token(current, call.versioning);
    }
    close_table(row.rel);
    Datum values[3] = {CStringGetTextDatum(outcome_name(outcome))};
    bool nulls[3] = {false, outcome == Outcome::kNotFound || !returns_version(call),
                     !current.found};
    if (!nulls[1])
        values[1] = version::version_result(call.versioning, call.expected.type, version);
    if (!nulls[2])
        values[2] = stored_row_to_jsonb(current);
    return result_row(fcinfo, values, nulls);
}

} // namespace interlock::marker
