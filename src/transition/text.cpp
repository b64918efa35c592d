#include "transition/text.h"

#include "transition/transition.h"

namespace interlock::transition {

// Each removes the named element from the front of the text; false if there is another one.

static bool take(const char** at, char wanted) {
    *at += strspn(*at, " \t\r\n");
    if (**at != wanted)
        return false;
    ++*at;
    return true;
}

// jsonb prints only control characters as \u. Other escapes could be characters that the database
// does not have.
static bool take_code(const char** at) {
    constexpr const char* kDigits = "0123456789abcdef";
    int code = 0;
    for (int i = 0; i < 4; i++) {
        const char* digit = **at != '\0' ? strchr(kDigits, **at) : nullptr;
        if (digit == nullptr)
            return false;
        code = code * 16 + static_cast<int>(digit - kDigits);
        ++*at;
    }
    return code > 0 && code < ' ';
}

static bool take_escape(const char** at) {
    char escaped = **at;
    if (escaped == '\0')
        return false;
    ++*at;
    return escaped == 'u' ? take_code(at) : strchr("\"\\/bfnrt", escaped) != nullptr;
}

static bool take_state(const char** at) {
    if (!take(at, '"'))
        return false;
    while (static_cast<unsigned char>(**at) >= ' ') {
        char next = *(*at)++;
        if (next == '"')
            return true;
        if (next == '\\' && !take_escape(at))
            return false;
    }
    return false;
}

// Items between the brackets, separated by commas.
template <typename Take>
static bool take_list(const char** at, char begin, char end, Take&& take_item) {
    if (!take(at, begin))
        return false;
    if (take(at, end))
        return true;
    do {
        if (!take_item(at))
            return false;
    } while (take(at, ','));
    return take(at, end);
}

static bool take_states(const char** at) { return take_list(at, '[', ']', take_state); }

static bool take_edges(const char** at) {
    return take_state(at) && take(at, ':') && take_states(at);
}

// Of a guard. A number in JSON begins with no zero.
static bool take_number(const char** at) {
    constexpr int kMostDigits = 4;
    *at += strspn(*at, " \t\r\n");
    bool has_zero = **at == '0';
    size_t digits = strspn(*at, "0123456789");
    *at += digits;
    return digits > 0 && digits <= (has_zero ? 1 : kMostDigits);
}

static bool take_guard(const char** at) {
    return take_state(at) && take(at, ':') && take_number(at);
}

static bool take_guards(const char** at) {
    return take_state(at) && take(at, ':') && take_list(at, '{', '}', take_guard);
}

static bool is_short(const char* text) { return strlen(text) <= kMostTransitionBytes; }

bool is_transitions(const char* text) {
    return is_short(text) && take_list(&text, '{', '}', take_edges) && take(&text, '\0');
}

bool is_states(const char* text) {
    return is_short(text) && take_states(&text) && take(&text, '\0');
}

bool is_guards(const char* text) {
    return is_short(text) && take_list(&text, '{', '}', take_guards) && take(&text, '\0');
}

} // namespace interlock::transition
