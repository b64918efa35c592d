#include "history/settings.h"

#include "server/arguments.h"
#include "table/trigger.h"

namespace interlock::history {

constexpr const char* kNotify[] = {"notify off", "notify on", "notify full"}; // by Notify
constexpr const char* kMarkers[] = {"ignore markers", "record markers"};
constexpr const char* kLists[] = {"ignored columns", "ignored writers"};

// The number at the beginning of a text.
static int64 number_in(const char* text) { return strtoll(text, nullptr, 10); }

// The list whose length is argument *next, which moves behind it.
static NameList read_list(const NameList& arguments, int* next) {
    int first = *next + 1;
    int64 count = *next < arguments.count ? number_in(arguments[*next]) : 0;
    count = Max(0, Min(count, arguments.count - first));
    *next = first + static_cast<int>(count);
    return {arguments.names + first, static_cast<int>(count)};
}

bool read_settings(const Trigger* trigger, HistorySettings* settings) {
    constexpr int kFixed = 7; // in front of the lists
    NameList arguments = arguments_from(trigger, 0);
    if (arguments.count < kFixed + 2)
        return false;
    *settings = {};
    settings->keep_versions = static_cast<int32>(number_in(arguments[0]));
    settings->keep_for = number_in(arguments[1]);
    settings->since = number_in(arguments[2]);
    for (Notify notify : {Notify::kOn, Notify::kFull})
        if (strcmp(arguments[3], kNotify[static_cast<int>(notify)]) == 0)
            settings->notify = notify;
    settings->record_markers = strcmp(arguments[4], kMarkers[1]) == 0;
    settings->partition_by = number_in(arguments[5]);
    settings->whole_every = static_cast<int32>(number_in(arguments[6]));
    int next = kFixed;
    settings->ignored_columns = read_list(arguments, &next);
    settings->ignored_writers = read_list(arguments, &next);
    next = Min(next, arguments.count);
    settings->key = {arguments.names + next, arguments.count - next};
    return settings->keep_for <= kLongestDuration && settings->partition_by <= kLongestDuration &&
           settings->whole_every >= 1 && settings->whole_every <= kMostWholeEvery &&
           IS_VALID_TIMESTAMP(settings->since) && settings->key.count % 2 == 0 &&
           has_arguments(trigger, trigger_arguments(*settings));
}

static List* add_list(List* arguments, const NameList& list, const char* kind) {
    return add_names(add_argument(arguments, psprintf("%d %s", list.count, kind)), list);
}

List* trigger_arguments(const HistorySettings& settings) {
    bool keeps_all = settings.keep_versions <= 0;
    List* arguments = add_argument(NIL, keeps_all ? "" : psprintf("%d", settings.keep_versions));
    arguments = add_argument(
        arguments,
        settings.keep_for <= 0 ? "" : psprintf(INT64_FORMAT " microseconds", settings.keep_for));
    arguments = add_argument(
        arguments, psprintf(INT64_FORMAT " microseconds since 2000-01-01 UTC", settings.since));
    arguments = add_argument(arguments, kNotify[static_cast<int>(settings.notify)]);
    arguments = add_argument(arguments, kMarkers[settings.record_markers ? 1 : 0]);
    arguments = add_argument(
        arguments, settings.partition_by <= 0
                       ? ""
                       : psprintf(INT64_FORMAT " microseconds a partition", settings.partition_by));
    arguments = add_argument(arguments, psprintf("%d entries per whole row", settings.whole_every));
    arguments = add_list(arguments, settings.ignored_columns, kLists[0]);
    arguments = add_list(arguments, settings.ignored_writers, kLists[1]);
    return add_names(arguments, settings.key);
}

static bool same_names(const NameList& left, const NameList& right) {
    if (left.count != right.count)
        return false;
    for (int i = 0; i < left.count; i++)
        if (!has_name(right, left.names[i]))
            return false;
    return true;
}

// Neither list names anything twice.
bool ignores_the_same(const HistorySettings& left, const HistorySettings& right) {
    return left.record_markers == right.record_markers &&
           same_names(left.ignored_columns, right.ignored_columns) &&
           same_names(left.ignored_writers, right.ignored_writers);
}

} // namespace interlock::history
