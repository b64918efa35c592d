// The SQLSTATEs of the extension, and the JSON in an error's DETAIL.
//
// Class IL belongs to the extension. All other codes are the server's. For a conflict, DETAIL has
// the details as one JSON object, and HINT says what to do.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

constexpr int kVersionConflict = MAKE_SQLSTATE('I', 'L', '0', '0', '1');
constexpr int kTransitionNotAllowed = MAKE_SQLSTATE('I', 'L', '0', '0', '2');
constexpr int kStateChanged = MAKE_SQLSTATE('I', 'L', '0', '0', '3');
constexpr int kRowBeingEdited = MAKE_SQLSTATE('I', 'L', '0', '0', '4');
constexpr int kMarkerNotHeld = MAKE_SQLSTATE('I', 'L', '0', '0', '5');
constexpr int kLeaseNotHeld = MAKE_SQLSTATE('I', 'L', '0', '0', '6');
constexpr int kColumnNotOwned = MAKE_SQLSTATE('I', 'L', '0', '0', '7');
constexpr int kClaimLost = MAKE_SQLSTATE('I', 'L', '0', '0', '8');
constexpr int kBlindUpdate = MAKE_SQLSTATE('I', 'L', '0', '1', '1');
constexpr int kNotEnoughLeft = MAKE_SQLSTATE('I', 'L', '0', '1', '2');

// One member of a JSON object. `text` is a text that will be quoted and escaped. `raw` is JSON. If
// both are null pointers, the value is JSON null.
struct JsonField {
    const char* name;
    const char* text = nullptr;
    const char* raw = nullptr;
};

// Returns the object as text in the current memory context.
char* json_object(std::initializer_list<JsonField> fields);

// Whether an error with this code means that a text is no value of a type, or no value of a domain.
// Errors about times out of range have their own hints and are not included.
constexpr bool is_of_input(int code) {
    return code == ERRCODE_CHECK_VIOLATION ||
           (ERRCODE_TO_CATEGORY(code) == ERRCODE_DATA_EXCEPTION &&
            code != ERRCODE_DATETIME_FIELD_OVERFLOW);
}

// Runs body() and returns its result. If a type's input function raises an error in body(), calls
// hint(), which calls errhint(). The input function itself cannot know what would be right.
// `is_meant` selects the errors by their code.
template <typename Hint, typename Body>
auto with_hint(Hint&& hint, Body&& body, bool (*is_meant)(int code) = is_of_input) {
    struct Given {
        std::remove_reference_t<Hint>* hint;
        bool (*is_meant)(int code);
    } given = {&hint, is_meant};
    ErrorContextCallback context = {};
    context.previous = error_context_stack;
    context.callback = [](void* argument) {
        auto* given = static_cast<Given*>(argument);
        if (given->is_meant(geterrcode()))
            (*given->hint)();
    };
    context.arg = &given;
    error_context_stack = &context;
    auto result = body();
    error_context_stack = context.previous;
    return result;
}

// Raises 40001: the row has changed since the snapshot of the transaction.
[[noreturn]] void raise_concurrent_update();

// Copies an error's message into a buffer of `size` bytes, in the encoding of the database. A
// longer message is cut between two characters.
void copy_message(char* to, size_t size, const char* message);

} // namespace interlock::inline server
