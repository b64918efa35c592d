// The counter lines in shared memory, for this folder and the view (overview/contention.cpp).
#pragma once

#include "contention/count.h"

namespace interlock::inline server {
struct UsageReport; // server/usage_report.h
} // namespace interlock::inline server

namespace interlock::inline contention {

// Defines settings and requests shared memory.
void define_counting();
void preload_lines();
void report_lines(UsageReport* report);

// Whether there are lines. There are none without preload.
bool has_lines();

// Line number n, from zero. The last line counts for everything that found no line. Returns null
// after the last line. `copy` gets the content. Returns false if the line counts nothing.
struct LineCopy {
    LineName name; // kind kNone: the line of everything that found no line
    TimestampTz since;
    uint64 counters[kCounters];
};
int line_count();
bool read_line(int n, LineCopy* copy);

// Adds the counters that a line had before a restart. Only when the server starts.
void restore_line(const LineCopy& copy);

// Clears all lines.
void reset_lines();

// contention/save.cpp: reads the file of the last clean stop, and writes the file at the next clean
// stop.
void restore_lines();

} // namespace interlock::inline contention
