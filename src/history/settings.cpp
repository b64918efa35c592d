#include "history/settings.h"

#include "table/trigger.h"

namespace interlock::history {

constexpr const char* kEpoch = "microseconds since 2000-01-01 UTC";
constexpr const char* kNotify[] = {"notify off", "notify on", "notify full"}; // by Notify
constexpr const char* kMarkers[] = {"ignore markers", "record markers"};
constexpr const char* kColumns = "ignored columns";
constexpr const char* kWriters = "ignored writers";
constexpr int kFixedArguments = 5; // in front of the lists

// The place of the text in the list, -1 if it is not there.
template <size_t size>
static int find_word(const char* const (&words)[size], const char* text) {
    for (size_t i = 0; i < size; i++)
        if (strcmp(words[i], text) == 0)
            return static_cast<int>(i);
    return -1;
}

// Reads a list at argument *next, and moves that behind it.
static bool read_list(const Trigger* trigger, const char* kind, int* next, NameArguments* list) {
    if (*next >= argument_count(trigger))
        return false;
    char* rest;
    long count = strtol(trigger->tgargs[*next], &rest, 10);
    if (rest == trigger->tgargs[*next] || *rest != ' ' || strcmp(rest + 1, kind) != 0 ||
        count < 0 || count > argument_count(trigger) - *next - 1)
        return false;
    auto** names = static_cast<const char**>(palloc0(sizeof(char*) * (count + 1)));
    for (int i = 0; i < count; i++)
        names[i] = pstrdup(trigger->tgargs[*next + 1 + i]);
    *list = {names, static_cast<int>(count)};
    *next += static_cast<int>(count) + 1;
    return true;
}

static void read_retention(const Trigger* trigger, HistorySettings* settings) {
    long versions = strtol(trigger->tgargs[0], nullptr, 10);
    int64 longest = 10 * INT64CONST(366) * USECS_PER_DAY; // as long as enable_history takes
    settings->keep_versions = static_cast<int32>(Max(0, Min(versions, PG_INT32_MAX)));
    settings->keep_for = Max(0, Min(strtoll(trigger->tgargs[1], nullptr, 10), longest));
    char* end;
    TimestampTz since = strtoll(trigger->tgargs[2], &end, 10);
    if (end != trigger->tgargs[2] && IS_VALID_TIMESTAMP(since))
        settings->since = since;
}

static void add_list(StringInfo text, const NameArguments& list, const char* kind) {
    appendStringInfo(text, ", '%d %s'", list.count, kind);
    for (int i = 0; i < list.count; i++)
        appendStringInfo(text, ", %s", quote_literal_cstr(list.names[i]));
}

static bool same_names(const NameArguments& left, const NameArguments& right) {
    if (left.count != right.count)
        return false;
    for (int i = 0; i < left.count; i++)
        if (!has_name(right, left.names[i]))
            return false;
    return true;
}

HistorySettings read_settings(const Trigger* trigger) {
    HistorySettings settings = {};
    settings.since = DT_NOEND;
    settings.key_argument = argument_count(trigger);
    if (argument_count(trigger) < kFixedArguments)
        return settings;
    int notify = find_word(kNotify, trigger->tgargs[3]);
    int markers = find_word(kMarkers, trigger->tgargs[4]);
    int next = kFixedArguments;
    HistorySettings found = settings;
    if (notify < 0 || markers < 0 || !read_list(trigger, kColumns, &next, &found.ignored_columns) ||
        !read_list(trigger, kWriters, &next, &found.ignored_writers))
        return settings;
    read_retention(trigger, &found);
    found.notify = static_cast<Notify>(notify);
    found.record_markers = markers == 1;
    found.key_argument = next;
    found.well_formed = true;
    return found;
}

void add_settings(StringInfo text, const HistorySettings& settings) {
    if (settings.keep_versions > 0)
        appendStringInfo(text, "'%d'", settings.keep_versions);
    else
        appendStringInfoString(text, "''");
    if (settings.keep_for > 0)
        appendStringInfo(text, ", '" INT64_FORMAT " microseconds'", settings.keep_for);
    else
        appendStringInfoString(text, ", ''");
    appendStringInfo(text, ", '" INT64_FORMAT " %s', '%s', '%s'", settings.since, kEpoch,
                     kNotify[static_cast<int>(settings.notify)],
                     kMarkers[settings.record_markers ? 1 : 0]);
    add_list(text, settings.ignored_columns, kColumns);
    add_list(text, settings.ignored_writers, kWriters);
}

bool has_name(const NameArguments& list, const char* name) {
    for (int i = 0; i < list.count; i++)
        if (strcmp(list.names[i], name) == 0)
            return true;
    return false;
}

// Neither list names anything twice.
bool ignores_the_same(const HistorySettings& left, const HistorySettings& right) {
    return left.record_markers == right.record_markers &&
           same_names(left.ignored_columns, right.ignored_columns) &&
           same_names(left.ignored_writers, right.ignored_writers);
}

} // namespace interlock::history
