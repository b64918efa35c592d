// Type interlock.seconds, of the arguments that are durations: stored and printed as interval is,
// so that both are read alike (Arguments::interval()). It converts and checks nothing else: what no
// function takes is refused by duration_argument() (server/arguments.h), with the argument's name.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// A text of an interval or of a number of seconds. False: it is neither, and the context of an
// error that does not raise has been told; else this raises 22007.
bool read_seconds(char* text, Node* context, Datum* interval);

} // namespace interlock::inline server
