// Texts of values that do not depend on the session's settings, for what is stored or compared
// across sessions.
#pragma once

#include "server/scope.h"

namespace interlock::inline server {

// Runs body() so that what values print as does not depend on the session's settings; in `utc`
// times neither.
template <typename Body>
void printing_alike(bool utc, Body&& body);

// Settings by which values print: DateStyle and its like, search_path, and lc_monetary.
struct Printing {
    bool styles;
    bool names;
    bool money;
};

// Likewise, for values that print by those settings: names have their schema, money is in dollars.
template <typename Body>
void printing_alike(Printing by, Body&& body);

// A value as a cast to text prints it, but dates and times as in JSON, those with a zone in UTC,
// and all others under the default settings. A literal without a cast is of type unknown. What
// types print by other settings still depends on those: money on lc_monetary, regclass on
// search_path.
char* stable_text(Oid type, Datum value);

// --- Inside --------------------------------------------------------------------------------------

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
