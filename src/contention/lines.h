// The lines of the counters in shared memory, for this folder and the view
// (overview/contention.cpp).
#pragma once

#include "contention/count.h"

namespace interlock::inline server {
struct UsageReport; // server/usage_report.h
} // namespace interlock::inline server

namespace interlock::inline contention {

// Settings and shared memory.
void define_counting();
void preload_lines();
void report_lines(UsageReport* report);

// Whether there are lines: with preload.
bool has_lines();

// Line number n, from zero, which is the line of all that found none; null at the end. `copy` gets
// what it counts, and false is returned when it counts nothing.
struct LineCopy {
    LineName name; // kind kNone: the line of all that found none
    TimestampTz since;
    uint64 counters[kCounters];
};
int line_count();
bool read_line(int n, LineCopy* copy);

// Adds what a line has counted before a restart. At the start of the server alone.
void restore_line(const LineCopy& copy);

// Forgets all lines.
void reset_lines();

// contention/save.cpp: reads the file of a clean stop, and writes it at the next one.
void restore_lines();

} // namespace interlock::inline contention
