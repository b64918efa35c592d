// Tables whose rows come from a publisher, by logical replication.
#pragma once

#include "server/server.h"

namespace interlock::inline table {

// Whether a subscription, enabled or not, writes the table or one that it is a partition of. What
// is due there is done on the publisher, and what this server did by itself would meet the changes
// that arrive from there.
bool is_subscribed(Oid relid);

// A number for a row that this server adds to a table which a subscription writes, far from the
// numbers of the publisher's rows, which arrive: at random, from the first of them on. Numbers of
// JavaScript are exact up to four times that.
constexpr int64 kFirstNumberApart = INT64CONST(1) << 51;
int64 number_apart();

// INSERT INTO table (columns) VALUES ($1, ...), into a table of the extension that numbers its
// lines. Into one that a subscription writes, with a number apart; or with the one that is given,
// as SQL, unless it is null.
char* insert_of_line(Oid table, const char* columns, int count);
char* insert_of_line(Oid table, const char* columns, int count, const char* number);

} // namespace interlock::inline table
