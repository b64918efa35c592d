#include "contention/counters.h"

#include "server/shared_memory.h"
#include "server/usage_report.h"

namespace interlock::inline contention {

constexpr const char* kTranche = "pg_interlock_contention";

static int max_lines = 4096;
static bool counting = true;

namespace {

// Lines are made, and forgotten, under the lock; they are found without it. `places` is a hash
// table of open addressing: the number of a line, or kEmpty, which half of them are.
struct Lines {
    LWLock* lock;
    uint64 last_serial;
    int used;    // besides the first
    int classes; // of the used
    uint32 place_mask;
    pg_atomic_uint64 last_search; // for what is gone
};

} // namespace

constexpr uint32 kEmpty = 0; // no place has the first line

static Lines* lines = nullptr;
static CountedLine* all = nullptr; // 1 + max_lines
static pg_atomic_uint32* places = nullptr;

static uint32 place_count() { return pg_nextpower2_32(static_cast<uint32>(max_lines) * 2); }

constexpr size_t kLineBytes = TYPEALIGN(PG_CACHE_LINE_SIZE, sizeof(CountedLine));

static CountedLine* line_at(int n) {
    return reinterpret_cast<CountedLine*>(reinterpret_cast<char*>(all) + n * kLineBytes);
}

static uint32 number_of(const CountedLine* line) {
    auto offset = reinterpret_cast<const char*>(line) - reinterpret_cast<const char*>(all);
    return static_cast<uint32>(offset / static_cast<ptrdiff_t>(kLineBytes));
}

static LineRef ref_to(CountedLine* line) { return {line, pg_atomic_read_u64(&line->serial)}; }

static uint32 hash_of(const LineName& name) {
    return hash_bytes(reinterpret_cast<const unsigned char*>(&name),
                      static_cast<int>(offsetof(LineName, key_class)) + name.length);
}

static bool is_of_table(CountedKind kind) { return static_cast<int>(kind) < kTableKinds; }

static bool is_same(const LineName& left, const LineName& right) {
    return memcmp(&left, &right, sizeof(LineName)) == 0;
}

// --- Finding -------------------------------------------------------------------------------------

// Null when there is none, or when one is being made now.
static LineRef find_line(const LineName& name) {
    for (uint32 place = hash_of(name);; place++) {
        uint32 number = pg_atomic_read_u32(&places[place & lines->place_mask]);
        if (number == kEmpty)
            return {nullptr, 0};
        LineRef ref = ref_to(line_at(static_cast<int>(number)));
        pg_read_barrier();
        if (ref.serial != 0 && is_same(ref.line->name, name)) {
            pg_read_barrier();
            if (is_right(ref))
                return ref;
        }
    }
}

// --- Making, with the lock held ------------------------------------------------------------------

// Tables have at least half of the lines, whatever keys there are. Asked without the lock, too.
static bool has_room(const LineName& name) {
    return lines->used < max_lines && (is_of_table(name.kind) || lines->classes < max_lines / 2);
}

static void note_used(const LineName& name) {
    lines->used++;
    if (!is_of_table(name.kind))
        lines->classes++;
}

static CountedLine* find_free() {
    int number = lines->used;
    do
        number = number % max_lines + 1;
    while (pg_atomic_read_u64(&line_at(number)->serial) != 0);
    return line_at(number);
}

static void begin_line(CountedLine* line, const LineName& name) {
    line->name = name;
    line->since = GetCurrentTimestamp();
    for (pg_atomic_uint64& counter : line->counters)
        pg_atomic_write_u64(&counter, 0);
    pg_write_barrier();
    pg_atomic_write_u64(&line->serial, ++lines->last_serial);
}

static void enter_place(const CountedLine* line) {
    uint32 place = hash_of(line->name);
    while (pg_atomic_read_u32(&places[place & lines->place_mask]) != kEmpty)
        place++;
    pg_write_barrier();
    pg_atomic_write_u32(&places[place & lines->place_mask], number_of(line));
}

static LineRef make_line(const LineName& name) {
    LineRef found = find_line(name);
    if (found.line != nullptr)
        return found;
    if (!has_room(name))
        return ref_to(line_at(0));
    CountedLine* line = find_free();
    begin_line(line, name);
    enter_place(line);
    note_used(name);
    return ref_to(line);
}

static void clear_places() {
    for (uint32 i = 0; i <= lines->place_mask; i++)
        pg_atomic_write_u32(&places[i], kEmpty);
    lines->used = lines->classes = 0;
}

// A session that looks for a line meanwhile may find none; and who has found none looks again, as
// the first line is another one then.
static void enter_places_again() {
    clear_places();
    for (int n = 1; n <= max_lines; n++) {
        CountedLine* line = line_at(n);
        if (pg_atomic_read_u64(&line->serial) == 0)
            continue;
        enter_place(line);
        note_used(line->name);
    }
    pg_atomic_write_u64(&line_at(0)->serial, ++lines->last_serial);
}

// --- What is gone --------------------------------------------------------------------------------

static bool is_gone(const LineName& name) {
    if (name.database != MyDatabaseId)
        return !SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(name.database));
    return is_of_table(name.kind) && !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(name.object));
}

// The catalog is asked without the lock, and before any line goes: an error would leave those that
// have gone counted.
static void forget_gone() {
    auto* gone = static_cast<LineRef*>(palloc(sizeof(LineRef) * max_lines));
    int count = 0;
    for (int n = 1; n <= max_lines; n++) {
        LineCopy copy;
        LineRef ref = ref_to(line_at(n));
        if (read_line(n, &copy) && is_gone(copy.name))
            gone[count++] = ref;
    }
    if (count > 0) {
        LWLockAcquire(lines->lock, LW_EXCLUSIVE);
        for (int i = 0; i < count; i++)
            pg_atomic_compare_exchange_u64(&gone[i].line->serial, &gone[i].serial, 0);
        enter_places_again();
        LWLockRelease(lines->lock);
    }
    pfree(gone);
}

// Each table and database is asked for, so it is done once in a second, by one session.
static void make_room() {
    constexpr TimestampTz kPause = USECS_PER_SEC;
    if (!IsTransactionState() || InterruptHoldoffCount > 0)
        return;
    TimestampTz now = GetCurrentStatementStartTimestamp();
    uint64 last = pg_atomic_read_u64(&lines->last_search);
    if (now - static_cast<TimestampTz>(last) < kPause ||
        !pg_atomic_compare_exchange_u64(&lines->last_search, &last, static_cast<uint64>(now)))
        return;
    forget_gone();
}

static LineRef find_or_make(const LineName& name) {
    LineRef found = find_line(name);
    if (found.line != nullptr)
        return found;
    if (!has_room(name))
        make_room();
    if (!has_room(name))
        return ref_to(line_at(0));
    LWLockAcquire(lines->lock, LW_EXCLUSIVE);
    found = make_line(name);
    LWLockRelease(lines->lock);
    return found;
}

// --- Names ---------------------------------------------------------------------------------------

static LineName name_of(Oid object, Oid database, CountedKind kind, std::string_view text) {
    LineName name;
    memset(&name, 0, sizeof(name));
    name.database = database;
    name.object = object;
    name.kind = kind;
    size_t length = text.size();
    if (length > kMostClassBytes)
        length = pg_mbcliplen(text.data(), static_cast<int>(length), kMostClassBytes);
    name.length = static_cast<uint8>(length);
    if (length > 0) // else it may have no bytes at all
        memcpy(name.key_class, text.data(), length);
    return name;
}

// A key that is an identifier, such as a number or a uuid, is of no class of its own: that would be
// one for each.
static std::string_view class_of(std::string_view key) {
    bool has_digit = false;
    for (size_t length = 0; length < key.size(); length++) {
        char c = key[length];
        if (c == ':' || c == '/')
            return {key.data(), length};
        has_digit |= c >= '0' && c <= '9';
    }
    return has_digit ? std::string_view() : key;
}

namespace {

struct Known {
    LineName name;
    LineRef ref;
};

} // namespace

static bool is_known(const Known& known, Oid object, Oid database, std::string_view text) {
    return is_right(known.ref) && known.name.object == object && known.name.database == database &&
           std::string_view(known.name.key_class, known.name.length) == text;
}

// What this session has found: the last of each kind, so that its name need not be made, which
// costs more than the rest of a count; and others by the hash of the name.
static LineRef line_of_class(CountedKind kind, Oid object, Oid database, std::string_view text) {
    static Known last[kCountedKinds];
    static Known known[64];
    Known* latest = &last[static_cast<int>(kind)];
    if (is_known(*latest, object, database, text))
        return latest->ref;
    LineName name = name_of(object, database, kind, text);
    Known* entry = &known[hash_of(name) % lengthof(known)];
    if (!is_right(entry->ref) || !is_same(entry->name, name))
        *entry = {name, find_or_make(name)};
    *latest = *entry;
    return entry->ref;
}

// --- Memory --------------------------------------------------------------------------------------

static size_t lines_bytes() { return MAXALIGN(sizeof(Lines)); }
static size_t all_bytes() { return kLineBytes * (static_cast<size_t>(max_lines) + 1); }
static size_t places_bytes() { return sizeof(pg_atomic_uint32) * place_count(); }

static void request_memory() {
    RequestAddinShmemSpace(lines_bytes() + all_bytes() + places_bytes() + PG_CACHE_LINE_SIZE);
    RequestNamedLWLockTranche(kTranche, 1);
}

static void begin_all() {
    lines->lock = &GetNamedLWLockTranche(kTranche)->lock;
    lines->place_mask = place_count() - 1;
    pg_atomic_init_u64(&lines->last_search, 0);
    for (uint32 i = 0; i < place_count(); i++)
        pg_atomic_init_u32(&places[i], kEmpty);
    for (int n = 0; n <= max_lines; n++) {
        pg_atomic_init_u64(&line_at(n)->serial, 0);
        for (pg_atomic_uint64& counter : line_at(n)->counters)
            pg_atomic_init_u64(&counter, 0);
    }
    begin_line(line_at(0), {});
}

static void attach_memory() {
    bool found;
    size_t bytes = lines_bytes() + all_bytes() + places_bytes() + PG_CACHE_LINE_SIZE;
    char* memory = static_cast<char*>(ShmemInitStruct("pg_interlock contention", bytes, &found));
    all = reinterpret_cast<CountedLine*>(CACHELINEALIGN(memory));
    places = reinterpret_cast<pg_atomic_uint32*>(reinterpret_cast<char*>(all) + all_bytes());
    lines = reinterpret_cast<Lines*>(reinterpret_cast<char*>(places) + places_bytes());
    if (found)
        return;
    *lines = {};
    begin_all();
    restore_lines();
}

bool counts_contention() { return counting && lines != nullptr; }

LineRef line_of_table(Oid table, CountedKind kind, LineRef* known) {
    if (!counts_contention())
        return {nullptr, 0};
    if (!is_right(*known))
        *known = find_or_make(name_of(table, MyDatabaseId, kind, ""));
    return *known;
}

LineRef line_of_key(CountedKind kind, std::string_view key, Oid role, Oid database) {
    if (!counts_contention())
        return {nullptr, 0};
    return line_of_class(kind, role, database, class_of(key));
}

LineRef line_of_key(CountedKind kind, std::string_view key) {
    return line_of_key(kind, key, GetUserId(), MyDatabaseId);
}

LineRef line_of_scope(std::string_view scope) {
    if (!counts_contention())
        return {nullptr, 0};
    return line_of_class(CountedKind::kIdempotency, GetUserId(), MyDatabaseId, scope);
}

bool has_lines() { return lines != nullptr; }

int line_count() { return lines == nullptr ? 0 : max_lines + 1; }

bool read_line(int n, LineCopy* copy) {
    LineRef ref = ref_to(line_at(n));
    if (ref.serial == 0)
        return false;
    pg_read_barrier();
    copy->name = ref.line->name;
    copy->since = ref.line->since;
    for (int i = 0; i < kCounters; i++)
        copy->counters[i] = Min(pg_atomic_read_u64(&ref.line->counters[i]), kCounterEnd);
    pg_read_barrier();
    return is_right(ref);
}

void restore_line(const LineCopy& copy) {
    bool is_other = copy.name.kind == CountedKind::kNone;
    LineRef ref = is_other ? ref_to(line_at(0)) : make_line(copy.name);
    ref.line->since = Min(ref.line->since, copy.since);
    for (int i = 0; i < kCounters; i++)
        count(ref, static_cast<Counter>(i), Min(copy.counters[i], kCounterEnd));
}

void reset_lines() {
    LWLockAcquire(lines->lock, LW_EXCLUSIVE);
    for (int n = 1; n <= max_lines; n++)
        pg_atomic_write_u64(&line_at(n)->serial, 0);
    clear_places();
    begin_line(line_at(0), {});
    LWLockRelease(lines->lock);
}

void define_counting() {
    DefineCustomBoolVariable("interlock.count_contention",
                             "Counts conflicts, waits and the like, for the view contention.",
                             nullptr, &counting, true, PGC_SUSET, 0, nullptr, nullptr, nullptr);
}

void preload_lines() {
    DefineCustomIntVariable(
        "interlock.max_contention_lines",
        "How many tables and key classes have counters of their own in the view contention.",
        "Each takes 256 bytes of shared memory.", &max_lines, 4096, 16, 1024 * 1024, PGC_POSTMASTER,
        0, nullptr, nullptr, nullptr);
    add_shared_area({request_memory, attach_memory});
}

void report_lines(UsageReport* report) {
    if (has_lines())
        report_total(report, "contention lines", lines->used, max_lines);
}

} // namespace interlock::inline contention
