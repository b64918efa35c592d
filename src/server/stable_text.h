// Texts of values that do not depend on the session's settings. They are for values that are
// stored, or compared between sessions.
#pragma once

#include "server/scope.h"

namespace interlock::inline server {

// Runs body() under settings with which most values print the same in every session. With `utc`,
// times with a time zone print the same too.
template <typename Body>
void printing_alike(bool utc, Body&& body);

// The settings that a value's text depends on: DateStyle and similar ones, search_path, and
// lc_monetary.
struct Printing {
    bool styles;
    bool names;
    bool money;
};

// The same for values that depend on those settings. Names are printed with their schema, money in
// dollars.
template <typename Body>
void printing_alike(Printing by, Body&& body);

// The text of a value. Dates and times are printed as in JSON, and times with a time zone in UTC.
// All other values are printed as a cast to text prints them under the default settings. A literal
// without a cast is of type unknown. Some types also depend on settings that this does not change:
// money on lc_monetary, regclass on search_path.
char* stable_text(Oid type, Datum value);

// --- Internal ------------------------------------------------------------------------------------

bool prints_plainly();
bool prints_plainly(Printing by);
bool zone_is_utc();
void print_plainly(bool utc);
void print_plainly(Printing by);

template <typename Body>
void printing_alike(bool utc, Body&& body) {
    if (prints_plainly() && (!utc || zone_is_utc())) {
        body();
        return;
    }
    with_settings([&] {
        print_plainly(utc);
        body();
    });
}

template <typename Body>
void printing_alike(Printing by, Body&& body) {
    if (prints_plainly(by)) {
        body();
        return;
    }
    with_settings([&] {
        print_plainly(by);
        body();
    });
}

} // namespace interlock::inline server
