// The settings of a table's history, in the arguments of its trigger:
//
//     keep_versions, keep_for, since, notify, markers, partition_by, whole_every, ignored columns,
//     ignored writers, key
//
// Each list begins with its length. The key is pairs of a column and its type, up to the last
// argument. Columns are stored by name. After a rename, an ignored column is no longer ignored, and
// its changes are recorded.
#pragma once

#include "server/name_list.h"
#include "server/notify.h"

namespace interlock::history {

// The highest whole_every. To rebuild an entry, a reader reads at most this many entries.
constexpr int32 kMostWholeEvery = 100;

struct HistorySettings {
    int32 keep_versions; // 0: all versions
    int64 keep_for;      // microseconds, 0: for ever
    TimestampTz since;   // the history is complete from this time on, except for retention
    Notify notify;
    bool record_markers; // writes that only move the marker of a row have an entry
    int64 partition_by;  // microseconds of a new partition, 0: no partitions are created
    int32 whole_every;   // of so many entries of a row, one has the whole row; 1: all of them
    NameList ignored_columns;
    NameList ignored_writers;
    NameList key; // pairs of a column and its type
};

// Reads the settings. Returns false if enable_history does not write such arguments.
bool read_settings(const Trigger* trigger, HistorySettings* settings);
List* trigger_arguments(const HistorySettings& settings);

// Whether both settings ignore the same columns and writers. Otherwise the history is complete only
// since the time when its settings were replaced.
bool ignores_the_same(const HistorySettings& left, const HistorySettings& right);

} // namespace interlock::history
