// Which reads and writes of one row run without a statement. All rules are here, and
// execution/eligible.cpp has the reason for each. Other reads and writes run as a statement, with
// the same result.
//
// The principle of all rules: without a statement the library makes the calls that the executor
// would make for that statement. A case is eligible if these calls are known, and call only the
// server's own functions in the same order.
#pragma once

#include "execution/probe.h"
#include "execution/row_lock.h"
#include "table/row.h"

namespace interlock::inline execution {

struct RowInsert;
struct RowWrite;

// Whether the session is eligible. False also if the administrator has turned it off
// (interlock.direct_execution).
bool session_is_eligible();

// Whether the session and its transaction are eligible.
bool transaction_is_eligible();

// Whether the table is eligible, for reading and for writing its rows.
bool table_is_eligible(Relation rel, const TableInfo* info);

// Check the session, the transaction, the table, the kind of read or write, and the caller, who
// needs these privileges on the whole table. They read only catalogs, and run no code of other
// roles.
bool may_read_without_statement(Relation rel, const TableInfo* info, const UniqueKey& by,
                                RowLock lock);
bool may_update_without_statement(const KeyedRow& row);
bool may_insert_without_statement(const RowInsert& insert, const Bitmapset* named);

// Checks the expressions and assignments of one write. Call it before
// may_update_without_statement(), which may have been called for other rows of the table already.
bool is_said_without_statement(const RowWrite& write);

void define_direct_settings();

} // namespace interlock::inline execution
