// save_row: the changes of a row's holder, and the end of its marker, in one write.

#include "execution/stored_row.h"
#include "marker/call.h"
#include "server/arguments.h"
#include "version/argument.h"
#include "version/update.h"

namespace interlock::marker {

namespace {

struct SaveCall {
    MarkedRow row;
    const version::Versioning* versioning; // null: the table has no versions
    bool has_expected;
    version::VersionArgument expected; // its type also without one
};

} // namespace

static SaveCall open_save(const Arguments& arguments);
static bool save(const SaveCall& call, const Changes& changes, int64* version);
static bool expect_what_is_shown(SaveCall* call);
[[noreturn]] static void explain_unsaved(const SaveCall& call);

extern "C" {
PG_FUNCTION_INFO_V1(save_row);

Datum save_row(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    SaveCall call = open_save(arguments);
    Bitmapset* managed = bms_copy(call.row.marker->attnums);
    if (call.versioning != nullptr)
        managed = bms_add_member(managed, call.versioning->column);
    Changes changes = parse_changes(call.row.rel, call.row.info, call.row.key,
                                    changes_json(arguments, 3), managed);
    int64 version = 0;
    bool saved = save(call, changes, &version);
    if (!saved && expect_what_is_shown(&call))
        saved = save(call, changes, &version);
    if (!saved)
        explain_unsaved(call);
    count_call(call.row);
    close_table(call.row.rel);
    if (call.versioning == nullptr ||
        !version::has_versions_as(call.versioning, call.expected.type))
        PG_RETURN_NULL();
    return version::version_result(call.versioning, call.expected.type, version);
}
}

static SaveCall open_save(const Arguments& arguments) {
    SaveCall call = {};
    call.row = open_call(arguments, true);
    call.has_expected = !arguments.is_null(4);
    if (call.has_expected || version::versioning_of(call.row.info) != nullptr)
        call.versioning = version::require_versioning(call.row.rel, call.row.info);
    if (call.has_expected)
        call.expected = version::expected_version(arguments, 4, call.row.rel, call.versioning);
    else
        call.expected.type = arguments.type(4);
    return call;
}

static bool save(const SaveCall& call, const Changes& changes, int64* version) {
    return save_marked(call.row, changes, call.has_expected ? &call.expected.token : nullptr,
                       version);
}

// False also for a table without versions.
static bool read_version(const SaveCall& call, int64* version) {
    if (call.versioning == nullptr)
        return false;
    StoredRow row = read_row(call.row.rel, call.row.info, call.row.key,
                             bms_make_singleton(call.versioning->column));
    if (row.found)
        *version = version::stored_token(row, call.versioning);
    return row.found;
}

// Whether the row has another version than the expected one that looks the same to the caller; it
// is expected then.
static bool expect_what_is_shown(SaveCall* call) {
    int64 stored;
    if (!call->has_expected || !read_version(*call, &stored) || stored == call->expected.token ||
        !version::is_shown_as_expected(call->versioning, call->expected, stored))
        return false;
    call->expected.token = stored;
    return true;
}

// Raises why no row was written: it does not exist, the marker is lost, or the version differs.
static void explain_unsaved(const SaveCall& call) {
    const MarkedRow& row = call.row;
    Look found = look(row);
    if (!found.found)
        raise_no_such_row(row.rel, row.info, row.key);
    bool held = is_held(row, found);
    int64 stored;
    if (held && call.has_expected && read_version(call, &stored) && stored != call.expected.token) {
        count_call(row);
        version::count_call(row.info, true);
        version::raise_version_conflict(
            row.rel, row.info, *found.key, call.expected.token, stored,
            "The marker is still held. Read the row, and call save_row again "
            "with its version, or unlock_row to give up.");
    }
    if (held)
        raise_suppressed(row.rel);
    raise_not_held(row, found);
}

} // namespace interlock::marker
