// Which reads and writes of one row run without a statement: all the rules, each with its reason
// (execution/eligible.cpp). The rest runs as a statement; either does the same.
//
// The rule behind the rules: without a statement we make the calls that the executor would make for
// that statement. A case is eligible where these calls are known, and are calls of the server's own
// functions in the same order.
#pragma once

#include "execution/probe.h"
#include "execution/row_lock.h"
#include "table/row.h"

namespace interlock::inline execution {

struct RowInsert;
struct RowWrite;

// The session: false also when the administrator has turned it off (interlock.direct_execution).
bool session_is_eligible();

// The session and its transaction.
bool transaction_is_eligible();

// The table, for reading and for writing its rows.
bool table_is_eligible(Relation rel);

// All of these, the caller, who needs these privileges on the whole table, and the kind of write.
// They read catalogs of the server only, and run no code of others.
bool may_read_without_statement(Relation rel, const TableInfo* info, const UniqueKey& by,
                                RowLock lock);
bool may_update_without_statement(const KeyedRow& row);
bool may_insert_without_statement(const RowInsert& insert, const Bitmapset* named);

// The write itself: its expressions and assignments. Call it before may_update_without_statement(),
// which may have been called for other rows of the table already.
bool is_said_without_statement(const RowWrite& write);

void define_direct_settings();

} // namespace interlock::inline execution
