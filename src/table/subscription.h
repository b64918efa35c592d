// Tables that receive their rows from a publisher by logical replication.
#pragma once

#include "server/server.h"

namespace interlock::inline table {

// Whether a subscription, enabled or not, writes the table or a table that it is a partition of.
// Work that is due there is done on the publisher. If this server did it too, the result would
// collide with the changes that arrive from the publisher.
bool is_subscribed(Oid relid);

// Rows that this server adds to a table which a subscription writes get numbers far from the
// publisher's numbers: at random, from this number up. Numbers in JavaScript are exact up to four
// times this number.
constexpr int64 kFirstNumberApart = INT64CONST(1) << 51;
int64 number_apart();

// INSERT INTO table (columns) VALUES ($1, ...), for a table of the extension with numbered rows.
// For a table that a subscription writes, the number is chosen as above, or it is the given SQL
// expression unless that is null.
char* insert_of_line(Oid table, const char* columns, int count);
char* insert_of_line(Oid table, const char* columns, int count, const char* number);

} // namespace interlock::inline table
