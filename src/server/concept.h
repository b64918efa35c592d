// What a concept (marker, lease, history, ...: a folder of src/) registers of itself. The floors
// below call the concepts by this descriptor and name none of them.
//
// Each concept defines one constant of this type in its concept.cpp; src/pg_interlock.cpp, the one
// file that names all concepts, registers them when the server loads the library. A member that a
// concept does not need stays null.
#pragma once

#include "server/server.h"

namespace interlock::inline sweeper {
struct SweepTask; // sweeper/task.h
} // namespace interlock::inline sweeper
namespace interlock::inline table {
struct TablePart; // table/part.h
} // namespace interlock::inline table

namespace interlock::inline server {

struct UsageReport; // server/usage_report.h

struct Concept {
    const char* name;

    // Defines the settings that exist with and without preload. Called once, at load.
    void (*define_settings)() = nullptr;

    // For what needs shared_preload_libraries: requests shared memory (server/shared_memory.h),
    // starts background workers, defines the settings of both. Called once, at load, only while
    // preloaded.
    void (*preload)() = nullptr;

    // Called by the sweeper's launcher when it starts: the server has come up or was promoted, and
    // writes are allowed. Again in a launcher that the server has restarted.
    void (*launcher_starts)() = nullptr;

    // What the sweeper does for it in each run, in the order in which the concepts are registered.
    const SweepTask* sweep = nullptr;

    // Reports what is in use of its shared memory, to the view usage. Nothing without preload.
    void (*report_usage)(UsageReport* report) = nullptr;

    // Called by resync_sequences: what sessions and shared memory have of rows of this database,
    // and of numbers for new ones, may be older than they are, as a subscription has written them.
    void (*forget_rows)() = nullptr;

    // Its metadata of tables and its checks of rows: an array.
    const TablePart* parts = nullptr;
    int part_count = 0;
};

// A constant array of pointers to constants.
struct Concepts {
    const Concept* const* first;
    int count;

    const Concept* const* begin() const { return first; }
    const Concept* const* end() const { return first + count; }
};

// The concepts that are registered: for (const Concept* each : concepts()). None before the library
// is loaded.
Concepts concepts();

// Registers all concepts, then defines their settings and preloads them if the library is. From
// _PG_init alone; the array must live as long as the process.
void register_concepts(Concepts all);

} // namespace interlock::inline server
