// Blind updates: statements that write a row of a versioned table without comparing its version,
// and so overwrite whatever the row has become since it was read.
//
// A statement is classified when it is planned (statement/compared.h), and judged at each row that
// it really hits. A row is not written blindly
//
//   by a verb or the sweeper
//   by the action of a foreign key, or when only ignored columns change
//   when the transaction has written it before, but not by one of these two or by a verb that
//   needs to read nothing (version/unseen.h), or holds it by assert_version
//   by WHERE CURRENT OF a cursor that has fetched this version of it
//   when the statement says interlock.any_version(version)
//
// What becomes of the others is up to the owner of the table: allowed, a WARNING for each
// statement, or IL011. In a transaction with interlock.blind_updates = allow the owner's own are
// allowed, and logged in operation_log.
#pragma once

#include "execution/row_change.h"

namespace interlock::version {

// Judges the row that version_trigger is called for. `change` is null for DELETE. Raises IL011, and
// 55000 where the library was loaded too late to know the statement.
void judge_blindness(const TriggerData* trigger, const TableInfo* info, const RowChange* change);

// For a write of this extension that fires no trigger, of the row as it is before.
struct Versioning;
void note_own_write(Relation rel, HeapTuple row, const Versioning* versioning);

void define_blind_settings();

} // namespace interlock::version
