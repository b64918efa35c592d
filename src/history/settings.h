// The settings of a table's history, in the arguments of its trigger:
//
//     keep_versions, keep_for, since, notify, markers, ignored columns, ignored writers, key
//
// Each list begins with its length. The key is pairs of a column and its type, up to the last
// argument. Columns are known by their current names. After a rename, an ignored column is no
// longer ignored, and its changes are recorded.
#pragma once

#include "server/notify.h"

namespace interlock::history {

struct NameArguments {
    const char* const* names;
    int count;
};

struct HistorySettings {
    bool well_formed;    // false: enable_history does not write such arguments
    int32 keep_versions; // 0: all versions
    int64 keep_for;      // microseconds, 0: for ever
    TimestampTz since;   // the history is complete from this time on, except for retention
    Notify notify;
    bool record_markers; // writes that only move the marker of a row have an entry
    NameArguments ignored_columns;
    NameArguments ignored_writers;
    int key_argument; // the place of the key's first argument
};

// Reads the settings. Raises nothing, because any role can create a trigger with any arguments on
// its own table.
HistorySettings read_settings(const Trigger* trigger);

// Adds the arguments before those of the key, as SQL literals.
void add_settings(StringInfo text, const HistorySettings& settings);

bool has_name(const NameArguments& list, const char* name);

// Whether both ignore the same, so that a history can continue with the other settings.
bool ignores_the_same(const HistorySettings& left, const HistorySettings& right);

} // namespace interlock::history
