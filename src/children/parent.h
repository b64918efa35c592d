// The row that children belong to: asked when one of them changes, and moved once for all of them.
#pragma once

#include "children/changed.h"

namespace interlock::children {

// When a child is written. Raises IL004 while the marker of the parent is another holder's, and
// 42501 when the current user may not write the parent: both early, move_parent() decides, except
// for a user who comes after the one who has noted the parent. Asks nothing of a parent that is not
// there, and the marker of partitioned parents not at all.
void ask_parent(const ChangedParent& changed);

// Writes the parent as the user who has changed the child: its triggers move the version and ask
// the marker. Does nothing to a row that is gone, or whose version this transaction has moved.
// Raises what an UPDATE does, and 42501 with the privileges that are missing, unless this
// transaction has inserted the row.
void move_parent(const ChangedParent& changed);

// Moves all that are pending, as the deferred triggers do.
void move_pending_parents();

// Finds the key that the columns are, for the order of the parents. False when the table is gone.
// Raises 55000 when they name no row, or have other types by now.
bool find_parent_key(ParentColumns* by);

} // namespace interlock::children
