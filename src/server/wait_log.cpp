#include "server/wait_log.h"

namespace interlock::inline server {

static int log_waits = -1; // milliseconds

constexpr int64 kNever = PG_INT32_MAX;

static TimeoutId lock_wait_timeout = MAX_TIMEOUTS;

// In a signal handler. The server looks at its setting when the latch wakes it.
static void log_lock_wait() { log_lock_waits = true; }

WaitLog::WaitLog() { INSTR_TIME_SET_CURRENT(began_); }

int64 WaitLog::left() const {
    if (log_waits < 0)
        return kNever;
    instr_time now;
    INSTR_TIME_SET_CURRENT(now);
    INSTR_TIME_SUBTRACT(now, began_);
    return log_waits - static_cast<int64>(INSTR_TIME_GET_MICROSEC(now) / 1000);
}

const char* WaitLog::passed() const {
    instr_time now;
    INSTR_TIME_SET_CURRENT(now);
    INSTR_TIME_SUBTRACT(now, began_);
    return psprintf("%.3f", INSTR_TIME_GET_MILLISEC(now));
}

void WaitLog::write(const char* what, const char* detail) {
    is_written_ = true;
    ereport(LOG, (errmsg("process %d still waiting for %s after %s ms", MyProcPid, what, passed()),
                  detail != nullptr ? errdetail_log("%s", detail) : 0));
}

void WaitLog::write_end(const char* what, bool is_acquired) const {
    if (is_written_)
        ereport(LOG, (errmsg("process %d %s %s after %s ms", MyProcPid,
                             is_acquired ? "acquired" : "gave up waiting for", what, passed())));
}

bool logs_lock_waits() { return log_waits >= 0 && !log_lock_waits; }

// The setting is set to what it is, for the end of the scope to restore it.
void start_lock_wait_log() {
    if (lock_wait_timeout == MAX_TIMEOUTS)
        lock_wait_timeout = RegisterTimeout(USER_TIMEOUT, log_lock_wait);
    (void)set_config_option("log_lock_waits", "off", PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE,
                            true, 0, false);
    enable_timeout_after(lock_wait_timeout, Max(log_waits, 1));
}

void stop_lock_wait_log() { disable_timeout(lock_wait_timeout, false); }

void define_wait_log_settings() {
    DefineCustomIntVariable(
        "interlock.log_waits",
        "Logs waits for leases, key locks and idempotency claims that take this long.",
        "-1 logs none. Waits for key locks are not logged before deadlock_timeout.", &log_waits, -1,
        -1, INT_MAX, PGC_SUSET, GUC_UNIT_MS, nullptr, nullptr, nullptr);
}

} // namespace interlock::inline server
