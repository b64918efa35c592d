#include "contention/counters.h"

#include "server/checked_file.h"

namespace interlock::inline contention {

constexpr const char* kFile = "pg_stat/pg_interlock.contention";
constexpr uint32 kMagic = 0x494c4332;

namespace {

struct SavedHeader {
    uint32 magic;
    uint32 line_bytes;
    uint32 count;
};

} // namespace

static int count_lines() {
    LineCopy copy;
    int count = 0;
    for (int n = 0; n < line_count(); n++)
        count += read_line(n, &copy) ? 1 : 0;
    return count;
}

static void put_all(CheckedFile* file) {
    SavedHeader header = {kMagic, sizeof(LineCopy), static_cast<uint32>(count_lines())};
    put(file, &header, sizeof(header));
    LineCopy copy;
    memset(&copy, 0, sizeof(copy));
    for (int n = 0; n < line_count(); n++)
        if (read_line(n, &copy))
            put(file, &copy, sizeof(copy));
}

// What another version has written, or another program, may be anything.
static bool is_sound(const LineName& name) {
    static_assert(std::is_unsigned_v<std::underlying_type_t<CountedKind>>);
    return static_cast<int>(name.kind) < kCountedKinds && name.length <= kMostClassBytes;
}

static void get_all(CheckedFile* file) {
    SavedHeader header;
    LineCopy copy;
    if (!get(file, &header, sizeof(header)) || header.magic != kMagic ||
        header.line_bytes != sizeof(LineCopy))
        return;
    for (uint32 i = 0; i < header.count && get(file, &copy, sizeof(copy)); i++)
        if (is_sound(copy.name))
            restore_line(copy);
}

// Nothing is lost that could not be counted again: an error is a line of the log.
static void save_lines(int code, Datum) {
    if (code == 0 && has_lines() && was_shut_down(true))
        (void)write_checked_file(kFile, put_all);
}

void restore_lines() {
    on_shmem_exit(save_lines, 0);
    read_checked_file(kFile, sizeof(SavedHeader), get_all);
}

} // namespace interlock::inline contention
