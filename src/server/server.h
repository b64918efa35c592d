// The only file that includes PostgreSQL's headers.
//
// Standard headers come first: port.h redefines the printf family as macros. Files that need the
// server include this one.
//
// The house rule: the server leaves a function by longjmp whenever it raises an error, so a frame
// that calls the server holds only trivially destructible values. Memory contexts, resource owners
// and transaction abort clean up; server/scope.h has the pairs that must be undone on the way out.
#pragma once

// The assertions of the standard library call into libstdc++, which the server must not load. Some
// compilers turn them on for builds without optimization, and some distributions for all.
#undef _GLIBCXX_ASSERTIONS
#define _GLIBCXX_NO_ASSERTIONS

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <utility>

extern "C" {
#include <postgres.h>

#include <access/detoast.h>
#include <access/genam.h>
#include <access/generic_xlog.h>
#include <access/heapam.h>
#include <access/htup_details.h>
#include <access/nbtree.h>
#include <access/relation.h>
#include <access/table.h>
#include <access/tableam.h>
#include <access/transam.h>
#include <access/tupconvert.h>
#include <access/twophase.h>
#include <access/xact.h>
#include <access/xlog.h>
#include <catalog/dependency.h>
#include <catalog/heap.h>
#include <catalog/index.h>
#include <catalog/indexing.h>
#include <catalog/namespace.h>
#include <catalog/objectaccess.h>
#include <catalog/objectaddress.h>
#include <catalog/partition.h>
#include <catalog/pg_am.h>
#include <catalog/pg_amop.h>
#include <catalog/pg_attrdef.h>
#include <catalog/pg_auth_members.h>
#include <catalog/pg_authid.h>
#include <catalog/pg_class.h>
#include <catalog/pg_collation.h>
#include <catalog/pg_constraint.h>
#include <catalog/pg_control.h>
#include <catalog/pg_database.h>
#include <catalog/pg_depend.h>
#include <catalog/pg_enum.h>
#include <catalog/pg_extension.h>
#include <catalog/pg_inherits.h>
#include <catalog/pg_namespace.h>
#include <catalog/pg_operator.h>
#include <catalog/pg_opfamily.h>
#include <catalog/pg_partitioned_table.h>
#include <catalog/pg_proc.h>
#include <catalog/pg_sequence.h>
#include <catalog/pg_subscription.h>
#include <catalog/pg_subscription_rel.h>
#include <catalog/pg_trigger.h>
#include <catalog/pg_type.h>
#include <commands/async.h>
#include <commands/dbcommands.h>
#include <commands/defrem.h>
#include <commands/extension.h>
#include <commands/sequence.h>
#include <commands/trigger.h>
#include <common/controldata_utils.h>
#include <common/hashfn.h>
#include <common/int.h>
#include <common/pg_prng.h>
#include <executor/execPartition.h>
#include <executor/executor.h>
#include <executor/instrument.h>
#include <executor/nodeModifyTable.h>
#include <executor/spi.h>
#include <fmgr.h>
#include <funcapi.h>
#include <lib/ilist.h>
#include <libpq/pqformat.h>
#include <mb/pg_wchar.h>
#include <miscadmin.h>
#include <nodes/makefuncs.h>
#include <nodes/nodeFuncs.h>
#include <optimizer/optimizer.h>
#include <optimizer/planner.h>
#include <parser/parse_coerce.h>
#include <parser/parse_func.h>
#include <parser/parsetree.h>
#include <partitioning/partbounds.h>
#include <partitioning/partdesc.h>
#include <pgstat.h>
#include <pgtime.h>
#include <port/pg_crc32c.h>
#include <portability/instr_time.h>
#include <postmaster/bgworker.h>
#include <postmaster/interrupt.h>
#include <replication/logicalworker.h>
#include <replication/syncrep.h>
#include <replication/walsender.h>
#include <replication/walsender_private.h>
#include <rewrite/rewriteHandler.h>
#include <storage/bufmgr.h>
#include <storage/condition_variable.h>
#include <storage/fd.h>
#include <storage/ipc.h>
#include <storage/latch.h>
#include <storage/lmgr.h>
#include <storage/lock.h>
#include <storage/lwlock.h>
#include <storage/proc.h>
#include <storage/procarray.h>
#include <storage/shmem.h>
#include <storage/sinval.h>
#include <storage/spin.h>
#include <tcop/pquery.h>
#include <tcop/utility.h>
#include <utils/acl.h>
#include <utils/array.h>
#include <utils/builtins.h>
#include <utils/bytea.h>
#include <utils/catcache.h>
#include <utils/datetime.h>
#include <utils/datum.h>
#include <utils/float.h>
#include <utils/fmgroids.h>
#include <utils/fmgrprotos.h>
#include <utils/guc.h>
#include <utils/inval.h>
#include <utils/json.h>
#include <utils/jsonb.h>
#include <utils/lsyscache.h>
#include <utils/memutils.h>
#include <utils/numeric.h>
#include <utils/partcache.h>
#include <utils/plancache.h>
#include <utils/regproc.h>
#include <utils/rel.h>
#include <utils/reltrigger.h>
#include <utils/resowner.h>
#include <utils/rls.h>
#include <utils/ruleutils.h>
#include <utils/snapmgr.h>
#include <utils/syscache.h>
#include <utils/timeout.h>
#include <utils/timestamp.h>
#include <utils/tuplestore.h>
#include <utils/typcache.h>
#include <utils/varlena.h>
#include <utils/wait_event.h>
#include <utils/xid8.h>

// Of libpq/libpq.h, which needs headers of GSSAPI and OpenSSL.
extern PGDLLIMPORT WaitEventSet* FeBeWaitSet;
bool pq_check_connection(void);
}

// The server's macros of these names evaluate an argument twice: for a clock, the second value may
// be beyond the limit that the first one was compared with.
#undef Min
#undef Max

template <typename A, typename B>
constexpr std::common_type_t<A, B> Min(A a, B b) {
    return b < a ? b : a;
}
template <typename A, typename B>
constexpr std::common_type_t<A, B> Max(A a, B b) {
    return a < b ? b : a;
}

#include "server/compat.h"
