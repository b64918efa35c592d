// A file that the server writes when it stops, and reads when it starts: with a checksum at its
// end.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

struct CheckedFile {
    FILE* file;
    pg_crc32c sum;
    bool well; // nothing has failed yet
};

void put(CheckedFile* file, const void* bytes, size_t size);
bool get(CheckedFile* file, void* bytes, size_t size);

// Writes a file in the data directory by body(CheckedFile*), under another name until it is whole.
// False after a message in the log.
bool write_checked_file(const char* name, void (*body)(CheckedFile* file));

// Reads it by body(CheckedFile*), if it is whole and at least `least` bytes long, after removing
// it: what was read is never read again.
void read_checked_file(const char* name, size_t least, void (*body)(CheckedFile* file));

// In the postmaster when all processes have exited: the last checkpoint was a shutdown checkpoint.
// Not so after a crash or an immediate shutdown, when memory may be in the middle of a change.
bool was_shut_down(bool also_on_standby);

} // namespace interlock::inline server
