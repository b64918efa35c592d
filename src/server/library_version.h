// The version of the library, and that of the extension's SQL in a database. They differ from the
// installation of other files until ALTER EXTENSION UPDATE, which is run in each database, and in
// sessions that still have the previous library loaded.
//
// The library works with the SQL of older versions from kOldestSql on, as it knows what they lack.
// Of newer SQL it cannot know; a release that changes the last number alone promises that the
// library of any other such release works with its SQL.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// To be raised by a change after which the library no longer works with SQL of earlier versions.
constexpr const char* kOldestSql = "0.10.0";

constexpr const char* kLibraryVersion = INTERLOCK_VERSION;

// 1.2.3 as a number that compares as versions do; 0 for a text that is not three numbers.
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

// How the library of this process fits SQL of that version.
Fit fit_of(const char* sql);

// The extension in this database; the server has no cache for it. No oid and no version when it is
// not there.
struct ExtensionRow {
    Oid oid;
    Oid schema;
    char* version; // of its SQL
};
ExtensionRow extension_row();

// For when a session first uses the extension's SQL, and again when its schemas have changed: 55000
// if the library does not work with SQL of that version. If it does, and the version is another
// one, the session is warned once. Neither inside CREATE and ALTER EXTENSION nor during pg_upgrade.
void require_version(const char* sql);

// 55000 if a library of another file is loaded, of that version: the server finds one for
// shared_preload_libraries and one for the extension's functions. Null: none is.
void refuse_second_library(const char* version);

// The message of the error and warning about SQL, and its hint.
char* describe_versions(const char* sql);
char* advise_on_versions(const char* sql);

} // namespace interlock::inline server
