// The settings of a table's history, as the arguments of its trigger have them:
//
//     keep_versions, keep_for, since, notify, markers, ignored columns, ignored writers, key
//
// Both lists begin with their length; the key is pairs of a column and its type, up to the end.
// Columns are known by their names of the day: one that is renamed or dropped is not ignored any
// more, and its changes are recorded.
#pragma once

#include "server/name_list.h"
#include "server/notify.h"

namespace interlock::history {

struct HistorySettings {
    int32 keep_versions; // 0: all
    int64 keep_for;      // microseconds, 0: for ever
    TimestampTz since;   // complete from here on but for retention
    Notify notify;
    bool record_markers; // writes that move the marker of a row alone have an entry
    NameList ignored_columns;
    NameList ignored_writers;
    NameList key; // pairs of a column and its type
};

// False when they are not as enable_history writes them.
bool read_settings(const Trigger* trigger, HistorySettings* settings);
List* trigger_arguments(const HistorySettings& settings);

// Whether both ignore the same, so that one history goes on with the other's settings.
bool ignores_the_same(const HistorySettings& left, const HistorySettings& right);

} // namespace interlock::history
