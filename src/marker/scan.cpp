#include "marker/scan.h"

#include "table/relation_code.h"

namespace interlock::marker {

// status = 1, as create_sweep_index writes it.
static bool is_marked_condition(const Node* node, AttrNumber status) {
    if (!IsA(node, OpExpr))
        return false;
    auto* call = reinterpret_cast<const OpExpr*>(node);
    if (call->opfuncid != F_INT24EQ && call->opfuncid != F_INT4EQ && call->opfuncid != F_INT84EQ)
        return false;
    auto* column = static_cast<const Node*>(linitial(call->args));
    auto* one = static_cast<const Node*>(lsecond(call->args));
    return IsA(column, Var) && reinterpret_cast<const Var*>(column)->varattno == status &&
           IsA(one, Const) && !reinterpret_cast<const Const*>(one)->constisnull &&
           DatumGetInt32(reinterpret_cast<const Const*>(one)->constvalue) == 1;
}

static bool holds_marked(Relation index, const Marker* marker) {
    Form_pg_index form = index->rd_index;
    HeapTuple row = index->rd_indextuple;
    return form->indisvalid && !form->indcheckxmin && index->rd_rel->relam == BTREE_AM_OID &&
           is_of_marked_rows(row, marker->columns[kStatus].attnum) &&
           heap_attisnull(row, Anum_pg_index_indexprs, nullptr) && only_computes(index);
}

// Null if there is none.
static Relation open_index_of_marked(Relation rel, const Marker* marker) {
    ListCell* cell;
    foreach (cell, RelationGetIndexList(rel)) {
        Relation index = index_open(lfirst_oid(cell), AccessShareLock);
        if (holds_marked(index, marker))
            return index;
        index_close(index, NoLock);
    }
    return nullptr;
}

static bool is_marked(const MarkedScan& scan) {
    const MarkerColumn& status = scan.marker->columns[kStatus];
    bool is_null;
    Datum value = slot_getattr(scan.row, status.attnum, &is_null);
    return !is_null && integer_of(status.type, value) == 1;
}

static bool next_row(MarkedScan* scan) {
    return scan->index != nullptr
               ? index_getnext_slot(scan->by_index, ForwardScanDirection, scan->row)
               : table_scan_getnextslot(scan->by_table, ForwardScanDirection, scan->row);
}

// A longer condition is another one, and would take the caller's time to read.
bool is_of_marked_rows(HeapTuple index, AttrNumber status) {
    constexpr Size kMostConditionBytes = 64 * 1024;
    bool is_null;
    Datum condition = SysCacheGetAttr(INDEXRELID, index, Anum_pg_index_indpred, &is_null);
    return !is_null && toast_raw_datum_size(condition) <= kMostConditionBytes &&
           is_marked_condition(static_cast<Node*>(stringToNode(TextDatumGetCString(condition))),
                               status);
}

// The suffix may be followed by the number that made the name unique.
bool is_sweep_index(HeapTuple index) {
    auto* form = reinterpret_cast<Form_pg_index>(GETSTRUCT(index));
    const char* name = get_rel_name(form->indexrelid);
    if (name == nullptr || form->indnatts != 1 ||
        heap_attisnull(index, Anum_pg_index_indpred, nullptr))
        return false;
    size_t length = strlen(name);
    while (length > 0 && strchr("0123456789", name[length - 1]) != nullptr)
        length--;
    size_t suffix = strlen(kSweepIndexSuffix);
    return length > suffix && strncmp(name + length - suffix, kSweepIndexSuffix, suffix) == 0;
}

MarkedScan begin_marked_scan(Relation rel, const Marker* marker) {
    MarkedScan scan = {};
    scan.marker = marker;
    scan.snapshot = RegisterSnapshot(GetTransactionSnapshot());
    scan.row = table_slot_create(rel, nullptr);
    scan.index = open_index_of_marked(rel, marker);
    if (scan.index == nullptr) {
        scan.by_table = begin_table_scan(rel, scan.snapshot);
    } else {
        scan.by_index = begin_index_scan(rel, scan.index, scan.snapshot, 0);
        index_rescan(scan.by_index, nullptr, 0, nullptr, 0);
    }
    return scan;
}

bool next_marked(MarkedScan* scan) {
    while (next_row(scan)) {
        CHECK_FOR_INTERRUPTS();
        if (is_marked(*scan))
            return true;
    }
    return false;
}

void end_marked_scan(MarkedScan* scan) {
    if (scan->index == nullptr) {
        table_endscan(scan->by_table);
    } else {
        index_endscan(scan->by_index);
        index_close(scan->index, NoLock);
    }
    ExecDropSingleTupleTableSlot(scan->row);
    UnregisterSnapshot(scan->snapshot);
}

} // namespace interlock::marker
