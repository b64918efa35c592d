// Short entries: entries that have the new values of what changed, and not the whole row.
//
// With whole_every = n, one of n entries of a row is whole. A short entry names the entry on which
// it builds (builds_on) and counts the entries since the whole one (distance). Its row is the row
// of that entry with the short entry's values written over it. Each entry that another one may
// follow has a hash of its whole row (row_hash).
//
// Rows are rebuilt forwards, from an older entry. Backwards, from the current row or a later entry,
// would need no rule for trimming. But it would need every change to be recorded: a suppressed
// write, a disabled trigger or a dropped column would take away values of earlier versions.
//
// A writer builds on the newest entry of its key if its hash is the hash of the old row of the
// update. So these need no rules of their own: suppressed writes, DDL, disabled triggers, attached
// partitions, restored tables. After them the hashes differ, and the entry is whole.
//
// Isolation: the writer sees every entry that is committed, and its own. It has locked the row, and
// other writers of the row have ended, so their entries are among them. What a snapshot shows
// includes the entries on which the shown entries build, because those were committed earlier. At
// SERIALIZABLE, finding the newest entry does not count as a read.
//
// When trimming deletes an entry, the same statement makes the remaining entries that build on it
// whole. Trimming does not see entries of running transactions: they build on the newest entry that
// it sees. With keep_versions that entry stays. If only keep_for is set, trimming deletes an entry
// when no transaction runs that began before the entry had aged, and no writer builds on an entry
// that has aged.
//
// The hash finds accidents, such as a lost entry. It is no protection against who can write to the
// history table. Its owner can set it to null: then the row is not compared.
#pragma once

#include "history/history.h"

namespace interlock::history {

// The hash of a row as jsonb. It is the sum of the hashes of its members, so that the hash of a row
// follows from the hash of another row and of the members that differ.
uint64 hash_of_row(Datum row);

struct NewestEntry {
    bool is_followed; // found, and another entry may build on it
    int64 id;
    int32 distance;
    uint64 hash;
    TimestampTz changed_at;
};

// The newest entry of the key, at any isolation level. In a partitioned history table: the newest
// entry in the partition for `now`. An entry never builds on an entry in another partition, because
// that partition may be dropped. Not found if the table has no index of keys that the library
// knows.
NewestEntry newest_entry(Relation entries, Datum key, TimestampTz now);

bool may_build_on(const History* history, const NewestEntry& entry, TimestampTz now);

// The SQL expression for the whole row of entry h of the table. It raises XX001 if the row is not
// the recorded one, and 42501 if row security may hide an entry that is needed.
const char* whole_row_sql(Oid entries);

} // namespace interlock::history
