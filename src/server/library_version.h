// The version of the library and the version of the extension's SQL in a database. After new files
// are installed the two differ until ALTER EXTENSION UPDATE has run in that database. They also
// differ in a session that still has the previous library loaded.
//
// The library works with the SQL of older versions from kOldestSql on, because it knows what they
// lack. It does not know newer SQL. Releases that differ only in the last number promise that the
// library of each works with the SQL of the others.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// Raise this in a change after which the library no longer works with the SQL of earlier versions.
constexpr const char* kOldestSql = "0.10.0";

constexpr const char* kLibraryVersion = INTERLOCK_VERSION;

// Version 1.2.3 as a number. Numbers compare as the versions do. Returns 0 if the text is not three
// numbers.
constexpr int64 version_number(std::string_view text) {
    constexpr int64 kMost = 1000000;
    int64 number = 0;
    int64 part = -1; // no digit yet
    int parts = 0;
    for (size_t i = 0; i <= text.size(); i++) {
        char c = i < text.size() ? text[i] : '.';
        if (c >= '0' && c <= '9') {
            part = Max(part, 0) * 10 + (c - '0');
            if (part >= kMost)
                return 0;
        } else if (c == '.' && part >= 0) {
            number = number * kMost + part;
            part = -1;
            parts++;
        } else {
            return 0;
        }
    }
    return parts == 3 ? number : 0;
}

enum class Fit { same, works, fails };

// Whether the library of this process works with SQL of that version.
Fit fit_of(const char* sql);

// The extension's row in pg_extension of this database, which the server does not cache. If there
// is none, oid and version are invalid.
struct ExtensionRow {
    Oid oid;
    Oid schema;
    char* version; // version of the SQL
};
ExtensionRow extension_row();

// To be called when a session first uses the extension's SQL, and again when the extension's
// schemas have changed. Raises 55000 if the library does not work with SQL of that version. If it
// works but the version differs, it warns the session once. It does nothing inside CREATE or ALTER
// EXTENSION and during pg_upgrade.
void require_version(const char* sql);

// Raises 55000 if a library from another file is loaded, of that version. The server can find one
// library for shared_preload_libraries and another one for the extension's functions. Null means
// that no other library is loaded.
void refuse_second_library(const char* version);

// The text that describes both versions, for the error and the warning about SQL, with its hint.
char* describe_versions(const char* sql);
char* advise_on_versions(const char* sql);

} // namespace interlock::inline server
