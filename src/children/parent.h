// The parent row of children. It is checked when a child changes, and moved once for all its
// children.
#pragma once

#include "children/changed.h"

namespace interlock::children {

// To be called when a child is written. Raises IL004 while another holder has the parent's marker,
// and 42501 if the current user may not write the parent. These are early checks. move_parent()
// makes the final check once, as the user whose change was noted first for the parent. Checks
// nothing if there is no such parent, and does not check markers of partitioned parents.
void ask_parent(const ChangedParent& changed);

// Writes the parent as the user who has changed the child. The parent's triggers move the version
// and check the marker. Does nothing if the row is gone, or if this transaction has moved its
// version. Raises the errors of an UPDATE, and 42501 with the missing privileges, unless this
// transaction has inserted the row.
void move_parent(const ChangedParent& changed);

// Moves all pending parents, as the deferred triggers do.
void move_pending_parents();

// Finds the unique key that consists of these columns, for the order of the parents. Returns false
// if the table is gone. Raises 55000 if there is no such key any more, or if the columns have other
// types now.
bool find_parent_key(ParentColumns* by);

} // namespace interlock::children
