// A file that the server writes when it stops and reads when it starts. It ends with a checksum.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

struct CheckedFile {
    FILE* file;
    pg_crc32c sum;
    bool well; // no call has failed yet
};

void put(CheckedFile* file, const void* bytes, size_t size);
bool get(CheckedFile* file, void* bytes, size_t size);

// Creates a file in the data directory. body(CheckedFile*) writes the content. The file has another
// name until it is complete. On failure it writes a message to the log and returns false.
bool write_checked_file(const char* name, void (*body)(CheckedFile* file));

// Removes the file, and then calls body(CheckedFile*) to read it. So a file is never read twice.
// body() is not called if the file is damaged or shorter than `least` bytes.
void read_checked_file(const char* name, size_t least, void (*body)(CheckedFile* file));

// Whether the last checkpoint was a shutdown checkpoint. To be called in the postmaster after all
// processes have exited. It is false after a crash or an immediate shutdown, when a process may
// have left memory half changed.
bool was_shut_down(bool also_on_standby);

} // namespace interlock::inline server
