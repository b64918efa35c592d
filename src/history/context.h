// interlock.context: what an application says about a transaction, such as the request, the user
// and the job. Each entry of a history stores it.
//
// It is a setting that any role may set. It proves nothing, and affects no write.
#pragma once

#include "server/server.h"

namespace interlock::history {

void define_context_setting();

// The context as a jsonb object; null if there is none.
NullableDatum current_context();

} // namespace interlock::history
