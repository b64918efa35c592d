// The SQLSTATEs of the extension and the JSON that goes into an error's DETAIL.
//
// Class IL is ours; everything else uses the server's own codes. A caller finds the details of a
// conflict in DETAIL as one JSON object, and what to do about it in HINT.
#pragma once

#include "server/server.h"

namespace interlock {

constexpr int kVersionConflict = MAKE_SQLSTATE('I', 'L', '0', '0', '1');
constexpr int kTransitionNotAllowed = MAKE_SQLSTATE('I', 'L', '0', '0', '2');
constexpr int kStateChanged = MAKE_SQLSTATE('I', 'L', '0', '0', '3');
constexpr int kRowBeingEdited = MAKE_SQLSTATE('I', 'L', '0', '0', '4');
constexpr int kMarkerNotHeld = MAKE_SQLSTATE('I', 'L', '0', '0', '5');
constexpr int kLeaseNotHeld = MAKE_SQLSTATE('I', 'L', '0', '0', '6');
constexpr int kColumnNotOwned = MAKE_SQLSTATE('I', 'L', '0', '0', '7');
constexpr int kClaimLost = MAKE_SQLSTATE('I', 'L', '0', '0', '8');

// One member of a JSON object: `text` is quoted and escaped, `raw` is JSON already. A null pointer
// in both is JSON null.
struct JsonField {
    const char* name;
    const char* text = nullptr;
    const char* raw = nullptr;
};

// Returns the object as text in the current memory context.
char* json_object(std::initializer_list<JsonField> fields);

// Copies an error's message, in the encoding of the database, into `size` bytes: cut between
// characters where it is longer.
void copy_message(char* to, size_t size, const char* message);

} // namespace interlock
