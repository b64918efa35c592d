// Texts of values that do not depend on the session's settings, for what is stored or compared
// across sessions.
#pragma once

#include "server/scope.h"

namespace interlock {

// Runs body() so that what values print as does not depend on the session's settings; in `utc`
// times neither.
template <typename Body>
void printing_alike(bool utc, Body&& body);

// A value as a cast to text prints it, but dates and times as in JSON, those with a zone in UTC,
// and all others under the default settings. A literal without a cast is of type unknown. What
// types print by other settings still depends on those: money on lc_monetary, regclass on
// search_path.
char* stable_text(Oid type, Datum value);

// --- Inside --------------------------------------------------------------------------------------

bool prints_plainly();
bool zone_is_utc();
void print_plainly(bool utc);

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

} // namespace interlock
