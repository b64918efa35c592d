// The process that starts the workers of the sweeper when a deadline has passed.
#pragma once

namespace interlock::inline sweeper {

// Only while the library is preloaded.
void register_launcher();

} // namespace interlock::inline sweeper
