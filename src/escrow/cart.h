// The items of a cart: counters and amounts as JSON,
// [{"rel": "item", "key": 7, "column": "stock", "amount": 1}, ...].
#pragma once

#include "escrow/change.h"

namespace interlock::inline server {
class Arguments;
} // namespace interlock::inline server

namespace interlock::escrow {

// A cart has at most so many items: each of them keeps a lock to the end of the transaction.
constexpr int kMostItems = 1000;

struct CartItem {
    int number; // from 1, for errors
    Oid rel;
    const char* rel_text; // as it is given
    const char* column;
    JsonbValue key;
    Datum amount; // numeric
};

struct CartItems {
    CartItem* first;
    int count;
};

// Argument n, named "items". Raises 22004 for null, 22023 for another shape, and 42P01 for a table
// that does not exist. The items are in the order of their tables, so that callers open tables in
// one order.
CartItems items_argument(const Arguments& arguments, int n);

// The name of a member of an item, for errors.
const char* name_of_member(const CartItem& item, const char* member);

// Above zero; else 22023.
int64 amount_of_item(const CartItem& item, const EscrowColumn& column);

// The counter of an item whose table is open. Raises what the key and the column raise.
EscrowCounter counter_of_item(const CartItem& item, Relation rel, const TableInfo* info,
                              const EscrowColumn* column);

} // namespace interlock::escrow
