// Builds a JSON value token by token.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

class JsonBuilder {
public:
    void push(JsonbIteratorToken token, const JsonbValue* value = nullptr) {
        pushJsonbValue(&state_, token, const_cast<JsonbValue*>(value));
    }

    // The value. Only after the last token.
    JsonbValue* value() { return state_.result; }

    Jsonb* finish(JsonbIteratorToken last) {
        push(last);
        return JsonbValueToJsonb(value());
    }

private:
    JsonbInState state_ = {};
};

} // namespace interlock::inline server
