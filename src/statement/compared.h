// Which columns a condition compares. This rule decides whether an update is blind, and whether a
// statement names the holder of a marker.
//
// A row that a statement writes has met the statement's condition. After a wait for another
// transaction its newest version has met the condition again. So if every way through the condition
// compares a column of the row itself, the writer knew the value of that column. That is true only
// for a column of the target. Rows of the same table that a join, a subquery or WITH reads are not
// read again after the wait.
//
//   compared      version = 1    1 = version    version <= 1    version < 2    2 > version
//                 version IS NOT DISTINCT FROM 1    version IS NULL    version = ANY ('{1}')
//                 version::text = '1'    coalesce(version, 0) = 1    same(version, 1)
//                 (id, version) IN (SELECT ...)    EXISTS (SELECT ... WHERE u.v = version)
//                 t = row(1, 'a', 7)::t    xmin = '734'    any_version(version)
//   not compared  version >= 1    version <> 2    version IN (1, 2)    version = version
//                 NOT (version = 5)    version IS NOT NULL    anything joined to it by OR
//
// The rule judges the text of the condition, not its meaning. A function that ignores its argument
// counts as a comparison, and so does version <= 999999.
#pragma once

#include "statement/target.h"

namespace interlock::inline statement {

// Columns of the target, numbered as in the server's sets: minus
// FirstLowInvalidHeapAttributeNumber.
struct Compared {
    Bitmapset* at_all; // columns compared with anything that does not read the target
    Bitmapset* equal;  // column = one value, by the bytes: the row shows what the value is
};

// Members of Compared::at_all that are no columns. The whole row and its xmin stand for any of its
// columns. The last one is WHERE CURRENT OF a cursor.
constexpr int kWholeRow = -FirstLowInvalidHeapAttributeNumber;
constexpr int kCurrentOf = 0;

// The columns that every way through a condition of the target's query compares. A null condition
// compares nothing.
Compared compared_by(Target* target, Node* condition);

// The columns that both conditions compare, and the columns that at least one of them compares.
Compared both_compare(const Compared& left, const Compared& right);
Compared either_compares(const Compared& left, const Compared& right);

} // namespace interlock::inline statement
