// The settings of a table's history, as the arguments of its trigger have them:
//
//     keep_versions, keep_for, since, notify, markers, ignored columns, ignored writers, key
//
// Both lists begin with their length; the key is pairs of a column and its type, up to the end.
// Columns are known by their names of the day: one that is renamed or dropped is not ignored any
// more, and its changes are recorded.
#pragma once

#include "server/notify.h"

namespace interlock::history {

struct NameArguments {
    const char* const* names;
    int count;
};

struct HistorySettings {
    bool well_formed;    // false: the arguments are not as enable_history writes them
    int32 keep_versions; // 0: all
    int64 keep_for;      // microseconds, 0: for ever
    TimestampTz since;   // complete from here on but for retention
    Notify notify;
    bool record_markers; // writes that move the marker of a row alone have an entry
    NameArguments ignored_columns;
    NameArguments ignored_writers;
    int key_argument; // the first of the key's among the trigger's arguments
};

// Reads them. Any role can create a trigger with any arguments on a table of its own: raises no
// error.
HistorySettings read_settings(const Trigger* trigger);

// Adds the arguments up to those of the key, as SQL literals.
void add_settings(StringInfo text, const HistorySettings& settings);

bool has_name(const NameArguments& list, const char* name);

// Whether both ignore the same, so that one history goes on with the other's settings.
bool ignores_the_same(const HistorySettings& left, const HistorySettings& right);

} // namespace interlock::history
