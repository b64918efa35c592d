// The SQLSTATEs of the extension and the JSON that goes into an error's DETAIL.
//
// Class IL is ours; everything else uses the server's own codes. A caller finds the details of a
// conflict in DETAIL as one JSON object, and what to do about it in HINT.
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

// One member of a JSON object: `text` is quoted and escaped, `raw` is JSON already. A null pointer
// in both is JSON null.
struct JsonField {
    const char* name;
    const char* text = nullptr;
    const char* raw = nullptr;
};

// Returns the object as text in the current memory context.
char* json_object(std::initializer_list<JsonField> fields);

// Whether an error of this code is that of a text which is no value of a type, or not one of a
// domain. Errors of times out of range have hints of their own.
constexpr bool is_of_input(int code) {
    return code == ERRCODE_CHECK_VIOLATION ||
           (ERRCODE_TO_CATEGORY(code) == ERRCODE_DATA_EXCEPTION &&
            code != ERRCODE_DATETIME_FIELD_OVERFLOW);
}

// Runs body() and returns what it returns. When a type's input function raises an error in it, or
// one whose code `is_meant`, hint() calls errhint(): that function cannot know what would be right.
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

// 40001: what the snapshot of the transaction has is no longer so.
[[noreturn]] void raise_concurrent_update();

// Copies an error's message, in the encoding of the database, into `size` bytes: cut between
// characters where it is longer.
void copy_message(char* to, size_t size, const char* message);

} // namespace interlock::inline server
