#include "contention/count.h"

namespace interlock::inline contention {

static void count_error(const ErrorCounts& counts, int code) {
    bool is_timeout = code == ERRCODE_LOCK_NOT_AVAILABLE;
    bool is_conflict =
        code == ERRCODE_T_R_SERIALIZATION_FAILURE || code == ERRCODE_T_R_DEADLOCK_DETECTED;
    if (counts.is_wait) {
        count(counts.ref, Counter::kCalls);
        count_wait(counts.ref, counts.start, code);
        return;
    }
    if (!is_timeout && !is_conflict)
        return;
    count(counts.ref, Counter::kCalls);
    count(counts.ref, is_timeout ? Counter::kTimeouts : Counter::kConflicts);
}

// Called for messages of the log and warnings, too.
static void error_in_counted(void* argument) {
    auto* counts = static_cast<ErrorCounts*>(argument);
    int code = geterrcode();
    if (code == ERRCODE_SUCCESSFUL_COMPLETION || ERRCODE_TO_CATEGORY(code) == ERRCODE_WARNING)
        return;
    count_error(*counts, code);
    counts->ref.line = nullptr; // once
}

void count_wait(LineRef ref, instr_time start, int error) {
    instr_time time;
    INSTR_TIME_SET_CURRENT(time);
    INSTR_TIME_SUBTRACT(time, start);
    count(ref, Counter::kWaits);
    count(ref, Counter::kWaitTime, static_cast<uint64>(INSTR_TIME_GET_MICROSEC(time)));
    if (error == ERRCODE_LOCK_NOT_AVAILABLE)
        count(ref, Counter::kTimeouts);
    else if (error == ERRCODE_T_R_SERIALIZATION_FAILURE || error == ERRCODE_T_R_DEADLOCK_DETECTED)
        count(ref, Counter::kConflicts);
}

void push_error_counts(ErrorCounts* counts, LineRef ref, bool is_wait) {
    counts->ref = ref;
    counts->is_wait = is_wait;
    INSTR_TIME_SET_ZERO(counts->start);
    if (is_wait)
        INSTR_TIME_SET_CURRENT(counts->start);
    counts->context = {error_context_stack, error_in_counted, counts};
    error_context_stack = &counts->context;
}

} // namespace interlock::inline contention
