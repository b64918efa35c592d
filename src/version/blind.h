// Blind updates: statements that write a row of a versioned table without comparing its version.
// Such a statement overwrites any change that was made since the row was read.
//
// A statement is classified when it is planned (statement/compared.h). Each row that it really
// writes is then judged. A row is not written blindly in these cases:
//
// - A function of the extension or the sweeper writes it.
// - The action of a foreign key writes it, or only ignored columns change.
// - The transaction has written it before. This does not count if that was one of the writes above,
//   or a function that need not read the row (version/unseen.h).
// - The transaction holds it by assert_version.
// - WHERE CURRENT OF names a cursor that has fetched this version of the row.
// - The statement says interlock.any_version(version).
//
// The owner of the table decides about all other rows: they are allowed, cause a WARNING for each
// statement, or raise IL011. In a transaction with interlock.blind_updates = allow, the owner's own
// blind updates are allowed, and logged in operation_log.
#pragma once

#include "execution/row_change.h"

namespace interlock::version {

// Decides about the row for which version_trigger is called. `change` is null for DELETE. Raises
// IL011. Raises 55000 if the library was loaded too late to know the statement.
void judge_blindness(const TriggerData* trigger, const TableInfo* info, const RowChange* change);

// Notes a write of this extension that fires no trigger. The tuple is the row before the write.
struct Versioning;
void note_own_write(Relation rel, HeapTuple row, const Versioning* versioning);

void define_blind_settings();

} // namespace interlock::version
