// What the verbs share that act on a row without a statement: whether the case is plain enough for
// that, and finding the row by its key.
#pragma once

#include "table/key.h"
#include "table/relation.h"

namespace interlock {

struct KeyedRow {
    Relation rel;
    const RelationFacts* facts;
    const Key* key;
};

// kDeclined: nothing was done, and the caller runs the statement.
enum class DirectOutcome : uint8 { kDeclined, kNoRow, kDone };

// What is asked or told of a version of a row.
struct RowCallback {
    bool (*call)(void* closure, TupleTableSlot* version);
    void* closure;
};

// Whether rows may be read and written without statements, as far as that has to do neither with
// the table nor with a snapshot. interlock.direct_updates turns it off.
bool may_be_direct();

// And under READ COMMITTED.
bool is_plain_transaction();

// An ordinary heap table of its own without rules, whose rows are what its pages hold.
bool is_plain_table(Relation rel);

// Whether the calls that the executor would make for a statement on the row are known: an ordinary
// heap table of its own without rules, READ COMMITTED, no module that checks privileges itself, a
// caller who has `needed` on the whole table, may use the schema and the key's operators, and whom
// row security does not apply to.
bool may_act_directly(const KeyedRow& row, AclMode needed);

// The privileges among that. The statement also checks them column by column.
bool has_plain_rights(const RelationFacts* facts, Oid schema, AclMode needed);

// The key's index, null when its collation differs from the columns': then it does not say which
// key is equal.
Relation open_key_index(const RelationFacts* facts, LOCKMODE mode);

// Puts the row as the active snapshot sees it into the slot; false when there is none.
bool probe_key(const KeyedRow& row, Relation index, TupleTableSlot* slot);

// The same for many rows of a table: each as the snapshot sees it that is active when it is looked
// for. index_endscan ends them.
IndexScanDesc begin_probes(Relation rel, const RelationFacts* facts, Relation index);
bool probe_next(const KeyedRow& row, IndexScanDesc scan, TupleTableSlot* slot);

// Whether a version of the row has the key.
bool has_key(const KeyedRow& row, HeapTuple version);

inline HeapTuple row_in(TupleTableSlot* slot) {
    return ExecFetchSlotHeapTuple(slot, false, nullptr);
}

void define_direct_settings();

} // namespace interlock
