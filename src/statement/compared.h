// What a condition compares: the rule behind blind updates and behind the evidence of a holder.
//
// A row that a statement hits has met its condition, and after a wait for another transaction its
// newest version has met it again. So where each way through the condition compares a column of the
// row itself, the writer knew what is there. That holds for the target's own column only: what is
// read of the same table by a join, a subquery or WITH is not read again after the wait.
//
//   compared      version = 1    1 = version    version <= 1    version < 2    2 > version
//                 version IS NOT DISTINCT FROM 1    version IS NULL    version = ANY ('{1}')
//                 version::text = '1'    coalesce(version, 0) = 1    same(version, 1)
//                 (id, version) IN (SELECT ...)    EXISTS (SELECT ... WHERE u.v = version)
//                 t = row(1, 'a', 7)::t    xmin = '734'    any_version(version)
//   not compared  version >= 1    version <> 2    version IN (1, 2)    version = version
//                 NOT (version = 5)    version IS NOT NULL    anything beside it in an OR
//
// It is a rule about the text: a function that ignores its argument and version <= 999999 pass.
#pragma once

#include "statement/target.h"

namespace interlock::inline statement {

// Columns of the target as the server numbers them in a set: less
// FirstLowInvalidHeapAttributeNumber.
struct Compared {
    Bitmapset* at_all; // with anything that does not read the target
    Bitmapset*
        equal; // column = one value, by the bytes: what the value is can be told from the row
};

// Members of Compared::at_all that are no columns: the whole row, or its xmin, stands for any of
// its columns; and WHERE CURRENT OF a cursor.
constexpr int kWholeRow = -FirstLowInvalidHeapAttributeNumber;
constexpr int kCurrentOf = 0;

// What each way through a condition of the target's query compares; null compares nothing.
Compared compared_by(Target* target, Node* condition);

// What both compare, and what at least one of them does.
Compared both_compare(const Compared& left, const Compared& right);
Compared either_compares(const Compared& left, const Compared& right);

} // namespace interlock::inline statement
