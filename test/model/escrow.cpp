// Visits every state that a small world of one counter can get into and checks in each what
// docs/internals/escrow.md promises; then breaks the rules one by one and expects to be caught.
// README.md says what is modelled.
//
//   escrow              checks, as TAP
//   escrow --deep       checks larger worlds too
//   escrow --trace E3   tells the shortest ways in which a world without E3 goes wrong

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "search.h"

namespace {

// --- The world ---------------------------------------------------------------

constexpr int kClients = 3;
constexpr int kFolders = 2;
constexpr int kStocked = 1; // what the row begins with
constexpr int kMaximum = 2;
constexpr int kMostParts = 3; // not folded

using Count = int8_t;

struct Parts {
    Count takes = 0, returns = 0;

    int net() const { return returns - takes; }
    bool none() const { return takes == 0 && returns == 0; }
    void add(const Parts& other) { takes += other.takes, returns += other.returns; }
    void remove(const Parts& other) { takes -= other.takes, returns -= other.returns; }
};

// What the end of a transaction does to the memory.
struct Effects {
    Count inf_on_commit = 0, sup_on_commit = 0; // inf grows, sup shrinks
    Count inf_on_abort = 0, sup_on_abort = 0;

    bool none() const {
        return inf_on_commit == 0 && sup_on_commit == 0 && inf_on_abort == 0 && sup_on_abort == 0;
    }
    void add(const Effects& other) {
        inf_on_commit += other.inf_on_commit, sup_on_commit += other.sup_on_commit;
        inf_on_abort += other.inf_on_abort, sup_on_abort += other.sup_on_abort;
    }
};

constexpr Effects kTake = {0, 1, 1, 0}, kReturn = {1, 0, 0, 1};
constexpr Effects kReserve = {0, 0, 1, 0}, kConfirm = {0, 1, 0, 0}, kCancel = {1, 0, 0, 0};

enum class Phase : uint8_t { kIdle, kOpen, kPrepared, kLogged, kVisible };
enum class Step : uint8_t { kNone, kTested, kTakes, kReturns, kLoads };
enum class Cart : uint8_t { kNone, kReserves, kConfirms, kCancels };
enum class Change : uint8_t { kNone, kSets, kRemoves };
enum class Decision : uint8_t { kNone, kCommitted, kAborted };

struct Client {
    Phase phase = Phase::kIdle;
    Step step = Step::kNone;
    Cart cart = Cart::kNone;
    Change change = Change::kNone;
    bool prepared = false; // its commit runs no callback
    bool nested = false;   // in a savepoint
    bool orphaned = false; // the row of its parts is gone
    bool writes = false;   // the row, which it has locked
    uint8_t operations = 0;
    Count read = 0;                      // of the row, by a load
    Count carts = 0;                     // the same of the reservations, if it reads them too early
    Count direct = 0;                    // that its write of the row adds, besides
    Parts folded;                        // the parts that this write folds
    std::array<Parts, 2> parts;          // in the journal: outside of the savepoint, and in it
    std::array<Effects, 2> listed;       // what its end does to the memory
    Effects note;                        // the same, when it was prepared: in the memory
    Decision decision = Decision::kNone; // what the server would say of the note's transaction

    Parts all_parts() const {
        Parts all = parts[0];
        all.add(parts[1]);
        return all;
    }
    bool undecided() const {
        return phase == Phase::kOpen || phase == Phase::kPrepared || phase == Phase::kLogged;
    }
};

// A client, and what a crash leaves of it: nothing, unless it is prepared.
struct Slot {
    Client now, flushed;
};

struct Disk {
    bool exists = true;
    bool off = false; // triggers are disabled
    Count row = kStocked;
    Count minimum = 0;
    Count carts = 0;
    Count outside = 0; // sold for good
    Parts parts;       // committed and not folded

    int value() const { return row + parts.net(); }
};

struct Memory {
    bool loaded = false;
    bool current = false; // of the epoch of the table
    Count inf = 0, sup = 0;
};

struct Folder {
    enum : uint8_t { kIdle, kLooked, kLocked, kReady } phase = kIdle;
    Count row = 0;
    Parts seen;
};

struct Reader {
    bool here = false;
    Count row = 0;
    Count parts = 0; // their sum
    Count value = 0; // when the snapshot was taken
};

struct State {
    Disk log; // all that has a commit record
    Disk flushed;
    Memory memory;
    std::array<Slot, kClients> slots;
    std::array<Folder, kFolders> folders;
    Reader reader;
};

static_assert(std::has_unique_object_representations_v<State>, "states are compared as bytes");

// What may happen, so that a world can be rich in one thing and poor in another.
struct Scope {
    const char* name;
    int clients;
    int folders;
    int operations; // of a transaction
    bool nested, prepares, direct, changes, carts, reads;
};

constexpr Scope kPlain = {"three clients", 3, 1, 1, false, false, false, false, false, false};
constexpr Scope kNested = {"savepoints", 2, 1, 2, true, false, false, false, false, false};
constexpr Scope kPrepare = {"prepared", 2, 1, 1, false, true, false, false, false, false};
constexpr Scope kDirect = {"direct", 2, 1, 1, false, true, true, false, false, false};
constexpr Scope kChanges = {"changes", 2, 0, 1, false, true, false, true, false, false};
constexpr Scope kCarts = {"reservations", 2, 0, 1, false, true, false, false, true, false};
constexpr Scope kFolds = {"folds", 2, 2, 1, false, false, false, false, false, true};
constexpr Scope kRemoves = {"removal", 2, 0, 1, false, false, false, true, true, false};
constexpr const Scope* kScopes[] = {&kPlain,   &kNested, &kPrepare, &kDirect,
                                    &kChanges, &kCarts,  &kFolds,   &kRemoves};

constexpr Scope kDeepNested = {
    "savepoints, prepared", 2, 1, 2, true, true, true, false, false, false};
constexpr Scope kDeepThree = {"three, prepared", 3, 1, 1, false, true, true, false, false, false};
constexpr Scope kDeepCarts = {
    "reservations, folds", 2, 1, 1, false, true, false, false, true, false};
constexpr const Scope* kDeepScopes[] = {&kDeepNested, &kDeepThree, &kDeepCarts};

enum class Outcome {
    kNotNow,
    kFine,
    kBelow,
    kAbove,
    kFoldChanges,
    kSnapshotChanges,
    kRowCheck,
    kLost,
    kOrphan,
    kRefused,
};
using enum Outcome;

constexpr const char* kOutcomeWords[] = {
    "",
    "nothing goes wrong",
    "a value below the minimum",
    "a value above the maximum",
    "a fold changes the value",
    "a snapshot changes",
    "the row breaks its CHECK",
    "a unit is lost or sold twice",
    "a part without its row",
    "an adjustment is refused that fits",
};

enum class Fault {
    kNone,
    kTestsFirst,
    kListsLate,
    kReturnCounts,
    kOwnReturn,
    kTakeMakesRoom,
    kEarlyReturn,
    kEarlyTake,
    kAbortKeeps,
    kSavepointKeeps,
    kReleaseCommits,
    kReleaseForgets,
    kPrepareForgets,
    kPrepareCommits,
    kPrepareAborts,
    kNoSettle,
    kSettleEarly,
    kLoadUnlocked,
    kLoadSkipsTakes,
    kLoadCountsReturns,
    kLoadSkipsReturns,
    kLoadCountsTakes,
    kLoadSkipsNotes,
    kLoadsOwn,
    kEvictsPending,
    kSkipsTest,
    kLooksFirst,
    kTruncates,
    kSumsFirst,
    kMixedRead,
    kDirectBare,
    kDirectAside,
    kDirectUnfolded,
    kSetUngated,
    kRemoveUngated,
    kLimitsUngated,
    kGateEnds,
    kEntryStays,
    kEpochIgnored,
    kWhileOff,
    kNoTableLock,
    kMaximumUntested,
    kNoPending,
    kCartUnlocked,
    kCartForgets,
    kNoRoomKept,
    kCartsReadEarly,
    kRemoveWithCart,
};
using enum Fault;

// --- What is seen ------------------------------------------------------------

template <typename Visit>
void each_client(const State& s, Visit visit) {
    for (const Slot& slot : s.slots)
        visit(slot.now);
}

// A commit changes what the log says in one step, and what snapshots see in a later one.
Parts visible_parts(const State& s) {
    Parts parts = s.log.parts;
    each_client(s, [&](const Client& client) {
        if (client.phase != Phase::kLogged)
            return;
        parts.remove(client.all_parts());
        parts.add(client.folded);
    });
    return parts;
}

int visible_row(const State& s) {
    int row = s.log.row;
    each_client(s, [&](const Client& client) {
        if (client.phase == Phase::kLogged)
            row -= client.direct + client.folded.net();
    });
    return row;
}

int visible_carts(const State& s) {
    int carts = s.log.carts;
    each_client(s, [&](const Client& client) {
        if (client.phase == Phase::kLogged && client.cart != Cart::kNone)
            carts += client.cart == Cart::kReserves ? -1 : 1;
    });
    return carts;
}

int visible_value(const State& s) { return visible_row(s) + visible_parts(s).net(); }

bool row_locked(const State& s, const Client* by = nullptr) {
    bool locked = false;
    each_client(s, [&](const Client& client) {
        locked |= &client != by &&
                  (client.writes || client.change != Change::kNone || client.step == Step::kLoads);
    });
    for (const Folder& folder : s.folders)
        locked |= folder.phase == Folder::kLocked || folder.phase == Folder::kReady;
    return locked;
}

Effects effects_of(const Client& client) {
    Effects effects;
    Parts parts = client.all_parts();
    if (client.cart == Cart::kReserves) {
        effects = kReserve;
    } else if (client.cart == Cart::kCancels) {
        effects = kCancel;
    } else {
        effects = {parts.returns, parts.takes, parts.takes, parts.returns};
        if (client.cart == Cart::kConfirms)
            effects.add(kConfirm);
    }
    return effects;
}

Count within(int number) { return static_cast<Count>(std::clamp(number, -4, 8)); }

void on_commit(Memory* memory, const Effects& effects) {
    memory->inf = within(memory->inf + effects.inf_on_commit);
    memory->sup = within(memory->sup - effects.sup_on_commit);
}

void on_abort(Memory* memory, const Effects& effects) {
    memory->inf = within(memory->inf + effects.inf_on_abort);
    memory->sup = within(memory->sup - effects.sup_on_abort);
}

// --- The rules ---------------------------------------------------------------

class Model {
public:
    using State = ::State;
    using Outcome = ::Outcome;
    using Scope = ::Scope;
    using Fault = ::Fault;

    Model(const Scope& scope, Fault fault) : scope_(scope), fault_(fault) {}

    // visit(state, outcome, words, client) for every step from this state.
    template <typename Visit>
    void each_step(const State& state, Visit visit) const {
        State after;
        auto start = [&] { return &(after = state); };
        auto step = [&](Outcome outcome, const char* words, int client = -1) {
            if (outcome == kFine)
                outcome = check(after);
            if (outcome != kNotNow)
                visit(after, outcome, words, client);
        };
        for (int i = 0; i < scope_.clients; i++)
            each_act(i, start, step);
        for (int i = 0; i < scope_.folders; i++)
            step(fold(start(), i), "fold: its next step");
        if (scope_.reads)
            step(read(start()), "a snapshot is taken, or dropped");
        if (scope_.changes)
            each_change(start, step);
        step(settle(start()), "decided notes are settled");
        step(evict(start()), "the entry is evicted");
        step(flush(start()), "the log is flushed");
        step(crash(start()), "a crash or a promotion, and a start");
    }

    void normalize(State* state) const;

    static const char* words(Outcome outcome) { return kOutcomeWords[static_cast<int>(outcome)]; }
    static void tell(const State& before, const State& after, const char* words, int who, int now);

private:
    bool broken(Fault fault) const { return fault_ == fault; }
    bool usable(const State& s) const {
        return s.memory.loaded && (s.memory.current || broken(kEpochIgnored));
    }

    template <typename Start, typename Step>
    void each_act(int i, Start start, Step step) const;
    template <typename Start, typename Step>
    void each_change(Start start, Step step) const;

    Outcome check(const State& s) const;
    bool may_begin(const State& s, const Client& client) const;
    bool may_operate(const State& s, const Client& client) const;
    Outcome refuse(const State& s, int sign, int inf, int sup) const;
    void list(Client* client, const Effects& effects) const;
    Outcome adjust(State* s, Client* client, int sign, Cart cart) const;
    Outcome insert_part(State* s, Client* client) const;
    Outcome write_row(State* s, Client* client, int sign) const;
    Outcome load(State* s, Client* client) const;
    void read_entry(State* s, const Client& client) const;
    Outcome confirm(State* s, Client* client) const;
    Outcome savepoint(Client* client) const;
    Outcome release(State* s, Client* client) const;
    Outcome roll_back_to(State* s, Client* client) const;
    Outcome commit(State* s, Client* client) const;
    Outcome become_visible(State* s, Client* client) const;
    Outcome call_back(State* s, Client* client) const;
    Outcome abort(State* s, Client* client) const;
    Outcome prepare(State* s, Client* client) const;
    bool gated(const State& s, const Client* by, Fault open) const;
    Outcome change(State* s, Client* client, Change change) const;
    Outcome commit_change(State* s, Client* client) const;
    Outcome settle(State* s) const;
    Outcome fold(State* s, int i) const;
    Outcome read(State* s) const;
    Outcome evict(State* s) const;
    Outcome flush(State* s) const;
    Outcome crash(State* s) const;

    const Scope& scope_;
    Fault fault_;
};

Outcome Model::check(const State& s) const {
    if (!s.log.exists)
        return kFine;
    // A standby, and the server after a crash, see what the log has.
    for (int value : {visible_value(s), s.log.value()}) {
        if (value < s.log.minimum)
            return kBelow;
        if (value > kMaximum)
            return kAbove;
    }
    if (s.log.row < s.log.minimum || (s.log.row > kMaximum))
        return kRowCheck;
    if (s.log.value() + s.log.carts + s.log.outside != kStocked)
        return kLost;
    const Reader& reader = s.reader;
    int row = broken(kMixedRead) ? visible_row(s) : reader.row;
    if (reader.here && row + reader.parts != reader.value &&
        (!broken(kMixedRead) || s.log.parts.none()))
        return kSnapshotChanges;
    return kFine;
}

template <typename Start, typename Step>
void Model::each_act(int i, Start start, Step step) const {
    State* s = start();
    auto client = [&] { return &start()->slots[i].now; };
    step(adjust(s, client(), -1, Cart::kNone), "takes", i);
    step(adjust(s, client(), +1, Cart::kNone), "returns", i);
    step(insert_part(s, client()), "inserts the part", i);
    step(load(s, client()), "loads the entry: its next step", i);
    if (scope_.direct) {
        step(write_row(s, client(), -1), "takes, in the row", i);
        step(write_row(s, client(), +1), "returns, in the row", i);
    }
    if (scope_.carts) {
        step(adjust(s, client(), -1, Cart::kReserves), "reserves", i);
        step(adjust(s, client(), +1, Cart::kCancels), "cancels its reservation", i);
        step(confirm(s, client()), "confirms its reservation", i);
    }
    if (scope_.nested) {
        step(savepoint(client()), "sets a savepoint", i);
        step(release(s, client()), "releases the savepoint", i);
        step(roll_back_to(s, client()), "rolls back to the savepoint", i);
    }
    if (scope_.prepares)
        step(prepare(s, client()), "prepares", i);
    if (scope_.changes) {
        step(change(s, client(), Change::kSets), "sets the value", i);
        step(change(s, client(), Change::kRemoves), "deletes the row", i);
        step(commit_change(s, client()), "commits that", i);
    }
    step(commit(s, client()), "writes its commit record", i);
    step(become_visible(s, client()), "becomes visible", i);
    step(call_back(s, client()), "runs the callback of its commit", i);
    step(abort(s, client()), "rolls back", i);
}

// --- Adjusting ---------------------------------------------------------------

bool Model::may_begin(const State& s, const Client& client) const {
    bool changed = false;
    each_client(s, [&](const Client& other) { changed |= other.change != Change::kNone; });
    return s.log.exists && (!s.log.off || broken(kWhileOff)) && client.note.none() &&
           (!changed || broken(kSetUngated) || broken(kRemoveUngated)) &&
           (client.phase == Phase::kIdle || client.phase == Phase::kOpen) &&
           client.step == Step::kNone && client.change == Change::kNone && !client.orphaned;
}

bool Model::may_operate(const State& s, const Client& client) const {
    Parts parts = s.log.parts;
    each_client(s, [&](const Client& other) { parts.add(other.all_parts()); });
    return may_begin(s, client) && client.operations < scope_.operations && !client.writes &&
           parts.takes + parts.returns < kMostParts;
}

// What is answered: "pending" while it fits if the undecided end well, else "insufficient".
Outcome Model::refuse(const State& s, int sign, int inf, int sup) const {
    int best = visible_value(s);
    bool undecided = s.log.carts > 0;
    each_client(s, [&](const Client& client) {
        undecided |= client.phase != Phase::kIdle;
        if (!client.undecided())
            return;
        Parts parts = client.all_parts();
        int with = client.direct;
        best += sign < 0 ? parts.returns + std::max(with, 0) : -parts.takes + std::min(with, 0);
    });
    bool pending = sign < 0 ? sup - 1 >= s.log.minimum : inf + 1 <= kMaximum;
    if (pending && !broken(kNoPending))
        return undecided ? kFine : kRefused;
    bool fits = sign < 0 ? best - 1 >= s.log.minimum : best + 1 <= kMaximum;
    return fits ? kRefused : kFine;
}

void Model::list(Client* client, const Effects& effects) const {
    client->listed[client->nested].add(effects);
}

Outcome Model::adjust(State* s, Client* client, int sign, Cart cart) const {
    if (!may_operate(*s, *client) || !usable(*s) || client->cart != Cart::kNone)
        return kNotNow;
    if (cart != Cart::kNone && client->operations > 0)
        return kNotNow;
    if (cart == Cart::kReserves && s->log.carts > 0)
        return kNotNow;
    if (cart == Cart::kCancels) {
        if (visible_carts(*s) == 0)
            return kNotNow;
        bool locked = false;
        each_client(*s, [&](const Client& other) { locked |= other.cart != Cart::kNone; });
        if (locked && !broken(kCartUnlocked))
            return kNotNow;
    }
    Memory& memory = s->memory;
    settle(s);
    int funds = 0;
    if (broken(kOwnReturn))
        funds = client->listed[0].inf_on_commit + client->listed[1].inf_on_commit;
    bool keeps_room = cart == Cart::kCancels && !broken(kNoRoomKept);
    if (sign < 0 && memory.inf + funds - 1 < s->log.minimum)
        return refuse(*s, sign, memory.inf, memory.sup);
    if (sign > 0 && !keeps_room && memory.sup + 1 > kMaximum && !broken(kMaximumUntested) &&
        !(cart == Cart::kCancels && broken(kNoRoomKept)))
        return refuse(*s, sign, memory.inf, memory.sup);

    client->phase = Phase::kOpen;
    client->operations++;
    client->cart = cart;
    if (cart == Cart::kCancels && broken(kCartForgets))
        return kFine;
    if (sign < 0 && broken(kTestsFirst)) {
        client->step = Step::kTested;
        return kFine;
    }
    Effects effects = sign < 0 ? kTake : kReturn;
    if (cart == Cart::kReserves && !broken(kNoRoomKept))
        effects = kReserve;
    if (cart == Cart::kCancels && !broken(kNoRoomKept))
        effects = kCancel;
    if (sign < 0)
        memory.inf = within(memory.inf - 1);
    else if (!keeps_room)
        memory.sup = within(memory.sup + 1);
    if (sign < 0 && broken(kTakeMakesRoom)) {
        memory.sup = within(memory.sup - 1);
        effects.sup_on_commit = 0;
    }
    if (sign > 0 && broken(kReturnCounts)) {
        memory.inf = within(memory.inf + 1);
        effects.inf_on_commit = 0;
    }
    if (!broken(kListsLate))
        list(client, effects);
    client->step = sign < 0 ? Step::kTakes : Step::kReturns;
    return kFine;
}

// An error here ends the transaction: the step that rolls back.
Outcome Model::insert_part(State* s, Client* client) const {
    if (client->step == Step::kNone || client->step == Step::kLoads)
        return kNotNow;
    bool takes = client->step != Step::kReturns;
    if (client->step == Step::kTested) {
        s->memory.inf = within(s->memory.inf - 1);
        list(client, kTake);
    }
    if (broken(kListsLate))
        list(client, takes ? kTake : kReturn);
    Parts& parts = client->parts[client->nested];
    takes ? parts.takes++ : parts.returns++;
    client->step = Step::kNone;
    return kFine;
}

// Without an entry, or where none may be used: the same test, and the row is written. The parts
// that are visible are folded with it.
Outcome Model::write_row(State* s, Client* client, int sign) const {
    if (!may_operate(*s, *client) || row_locked(*s, client) || client->nested)
        return kNotNow;
    Parts parts = visible_parts(*s);
    bool entry = usable(*s) && !broken(kDirectAside);
    if (entry) {
        settle(s);
    }
    int inf = s->memory.inf, sup = s->memory.sup;
    if (!entry) {
        inf = sup = visible_row(*s) + parts.net();
        each_client(*s, [&](const Client& other) {
            if (!other.undecided() || broken(kDirectBare))
                return;
            inf -= other.all_parts().takes;
            sup += other.all_parts().returns;
        });
    }
    if (!broken(kSkipsTest)) {
        if (sign < 0 && inf - 1 < s->log.minimum)
            return refuse(*s, sign, inf, sup);
        if (sign > 0 && sup + 1 > kMaximum)
            return refuse(*s, sign, inf, sup);
    }
    client->phase = Phase::kOpen;
    client->operations++;
    client->writes = true;
    client->direct = static_cast<Count>(sign);
    if (!broken(kDirectUnfolded))
        client->folded = parts;
    if (!entry)
        return kFine;
    if (sign < 0)
        s->memory.inf = within(s->memory.inf - 1);
    else
        s->memory.sup = within(s->memory.sup + 1);
    list(client, sign < 0 ? kTake : kReturn);
    return kFine;
}

// --- Loading -----------------------------------------------------------------

Outcome Model::load(State* s, Client* client) const {
    if (client->step == Step::kLoads) {
        client->step = Step::kNone;
        if (!usable(*s))
            read_entry(s, *client);
        if (client->operations == 0)
            client->phase = Phase::kIdle;
        return kFine;
    }
    bool own = client->writes;
    if (!may_begin(*s, *client) || usable(*s) || (own && !broken(kLoadsOwn)))
        return kNotNow;
    if (row_locked(*s, client) && !broken(kLoadUnlocked))
        return kNotNow;
    client->phase = Phase::kOpen;
    client->step = Step::kLoads;
    client->read = static_cast<Count>(visible_row(*s));
    client->carts = static_cast<Count>(visible_carts(*s));
    if (own)
        client->read = static_cast<Count>(client->read + client->direct + client->folded.net());
    return kFine;
}

// Reads the parts past snapshots: those that are committed, and those whose end is not known.
void Model::read_entry(State* s, const Client& loader) const {
    Parts parts = visible_parts(*s);
    parts.remove(loader.folded);
    int carts = broken(kCartsReadEarly) ? loader.carts : visible_carts(*s);
    int inf = loader.read + parts.net(), sup = inf + (broken(kNoRoomKept) ? 0 : carts);
    for (Slot& slot : s->slots) {
        Client& client = slot.now;
        client.note = {};
        if (!client.undecided() || &client == &loader)
            continue;
        Effects effects = effects_of(client);
        inf -= broken(kLoadSkipsTakes) ? 0 : effects.inf_on_abort;
        sup += broken(kLoadSkipsReturns) ? 0 : effects.sup_on_abort;
        if (broken(kLoadCountsReturns))
            inf += effects.inf_on_commit;
        if (broken(kLoadCountsTakes))
            sup -= effects.sup_on_commit;
        if (broken(kLoadCountsReturns) || broken(kLoadSkipsTakes))
            effects.inf_on_commit = effects.inf_on_abort = 0;
        if (broken(kLoadSkipsReturns) || broken(kLoadCountsTakes))
            effects.sup_on_commit = effects.sup_on_abort = 0;
        if (!broken(kLoadSkipsNotes))
            client.note = effects;
        client.decision = Decision::kNone;
    }
    s->memory = {true, true, within(inf), within(sup)};
}

bool has_pending(const State& s) {
    bool pending = false;
    each_client(s, [&](const Client& client) {
        pending |= !client.listed[0].none() || !client.listed[1].none() || !client.note.none() ||
                   client.step == Step::kTakes || client.step == Step::kReturns ||
                   client.step == Step::kTested;
    });
    return pending;
}

void drop_entry(State* s) {
    s->memory = {};
    for (Slot& slot : s->slots) {
        slot.now.note = {};
        slot.now.decision = Decision::kNone;
    }
}

Outcome Model::evict(State* s) const {
    if (!s->memory.loaded || (has_pending(*s) && !broken(kEvictsPending)))
        return kNotNow;
    drop_entry(s);
    return kFine;
}

// --- The ends of transactions ------------------------------------------------

Outcome Model::savepoint(Client* client) const {
    if (client->phase != Phase::kOpen || client->step != Step::kNone || client->nested ||
        client->writes || client->operations == scope_.operations)
        return kNotNow;
    client->nested = true;
    return kFine;
}

Outcome Model::release(State* s, Client* client) const {
    if (!client->nested || client->step != Step::kNone)
        return kNotNow;
    client->nested = false;
    client->parts[0].add(client->parts[1]);
    client->parts[1] = {};
    if (broken(kReleaseCommits))
        on_commit(&s->memory, client->listed[1]);
    else if (!broken(kReleaseForgets))
        client->listed[0].add(client->listed[1]);
    client->listed[1] = {};
    return kFine;
}

Outcome Model::roll_back_to(State* s, Client* client) const {
    if (!client->nested || client->step == Step::kLoads)
        return kNotNow;
    client->nested = false;
    client->step = Step::kNone;
    client->parts[1] = {};
    if (s->memory.loaded && !broken(kSavepointKeeps))
        on_abort(&s->memory, client->listed[1]);
    client->listed[1] = {};
    return kFine;
}

Outcome Model::commit(State* s, Client* client) const {
    bool open = client->phase == Phase::kOpen && client->step == Step::kNone && !client->nested &&
                client->change == Change::kNone;
    if (!open && client->phase != Phase::kPrepared)
        return kNotNow;
    client->phase = Phase::kLogged;
    Parts parts = client->all_parts();
    if (!parts.none() && (client->orphaned || !s->log.exists))
        return kOrphan;
    Disk& log = s->log;
    log.parts.add(parts);
    log.parts.remove(client->folded);
    log.row = static_cast<Count>(log.row + client->direct + client->folded.net());
    // What a client with a reservation believes is what it has asked for.
    switch (client->cart) {
    case Cart::kNone:
        log.outside = static_cast<Count>(log.outside - parts.net() - client->direct);
        break;
    case Cart::kReserves:
        log.carts++;
        break;
    case Cart::kCancels:
        log.carts = std::max<Count>(log.carts - 1, 0);
        break;
    case Cart::kConfirms:
        log.carts--;
        log.outside++;
        break;
    }
    if (broken(kEarlyReturn)) {
        s->memory.inf = within(s->memory.inf + client->listed[0].inf_on_commit);
        client->listed[0].inf_on_commit = 0;
    }
    if (broken(kEarlyTake)) {
        s->memory.sup = within(s->memory.sup - client->listed[0].sup_on_commit);
        client->listed[0].sup_on_commit = 0;
    }
    return kFine;
}

// Leaves the note and what the server says of it.
void forget(Client* client, Decision decision) {
    Effects note = client->note;
    *client = {};
    client->note = note;
    client->decision = note.none() ? Decision::kNone : decision;
}

Outcome Model::become_visible(State*, Client* client) const {
    if (client->phase != Phase::kLogged)
        return kNotNow;
    if (client->prepared)
        forget(client, Decision::kCommitted);
    else
        client->phase = Phase::kVisible;
    return kFine;
}

Outcome Model::call_back(State* s, Client* client) const {
    if (client->phase != Phase::kVisible)
        return kNotNow;
    if (s->memory.loaded)
        on_commit(&s->memory, client->listed[0]);
    forget(client, Decision::kCommitted);
    return kFine;
}

Outcome Model::abort(State* s, Client* client) const {
    if (client->phase != Phase::kOpen && client->phase != Phase::kPrepared)
        return kNotNow;
    if (s->memory.loaded && !broken(kAbortKeeps))
        for (const Effects& effects : client->listed)
            on_abort(&s->memory, effects);
    forget(client, Decision::kAborted);
    return kFine;
}

Outcome Model::prepare(State* s, Client* client) const {
    if (client->phase != Phase::kOpen || client->step != Step::kNone || client->nested ||
        client->change != Change::kNone)
        return kNotNow;
    client->phase = Phase::kPrepared;
    client->prepared = true;
    if (broken(kPrepareCommits))
        on_commit(&s->memory, client->listed[0]);
    else if (broken(kPrepareAborts))
        on_abort(&s->memory, client->listed[0]);
    else if (!broken(kPrepareForgets))
        client->note = client->listed[0];
    client->listed = {};
    return kFine;
}

Outcome Model::settle(State* s) const {
    if (broken(kNoSettle))
        return kNotNow;
    bool any = false;
    for (Slot& slot : s->slots) {
        Client& client = slot.now;
        Decision decision = client.decision;
        if (broken(kSettleEarly) && client.phase == Phase::kLogged)
            decision = Decision::kCommitted;
        if (client.note.none() || decision == Decision::kNone)
            continue;
        decision == Decision::kCommitted ? on_commit(&s->memory, client.note)
                                         : on_abort(&s->memory, client.note);
        client.note = {};
        client.decision = Decision::kNone;
        any = true;
    }
    return any ? kFine : kNotNow;
}

// --- Reservations ------------------------------------------------------------

Outcome Model::confirm(State* s, Client* client) const {
    bool locked = false;
    each_client(*s, [&](const Client& other) { locked |= other.cart != Cart::kNone; });
    if (!may_operate(*s, *client) || !usable(*s) || client->operations > 0 || locked ||
        visible_carts(*s) == 0)
        return kNotNow;
    client->phase = Phase::kOpen;
    client->operations++;
    client->cart = Cart::kConfirms;
    if (!broken(kNoRoomKept))
        list(client, kConfirm);
    return kFine;
}

// --- What excludes adjusting -------------------------------------------------

bool Model::gated(const State& s, const Client* by, Fault open) const {
    bool held = false;
    each_client(s, [&](const Client& client) {
        if (broken(kGateEnds) && (client.phase == Phase::kPrepared || client.prepared))
            return;
        held |= &client != by && client.phase != Phase::kIdle;
    });
    return held && (open == kNone || !broken(open));
}

Outcome Model::change(State* s, Client* client, Change change) const {
    Fault open = change == Change::kSets ? kSetUngated : kRemoveUngated;
    if (!may_begin(*s, *client) || client->phase != Phase::kIdle || row_locked(*s) ||
        gated(*s, client, open))
        return kNotNow;
    if (change == Change::kRemoves && s->log.carts > 0 && !broken(kRemoveWithCart))
        return kNotNow;
    client->phase = Phase::kOpen;
    client->change = change;
    if (!broken(kEntryStays))
        drop_entry(s);
    return kFine;
}

Outcome Model::commit_change(State* s, Client* client) const {
    if (client->change == Change::kNone)
        return kNotNow;
    Disk& log = s->log;
    log.parts.remove(visible_parts(*s));
    if (client->change == Change::kSets) {
        log.row = log.minimum;
        log.outside = static_cast<Count>(kStocked - log.value() - log.carts);
    } else {
        if (log.carts > 0)
            return kOrphan;
        log.exists = false;
        for (Slot& slot : s->slots)
            slot.now.orphaned = &slot.now != client && slot.now.phase != Phase::kIdle;
    }
    *client = {};
    return kFine;
}

template <typename Start, typename Step>
void Model::each_change(Start start, Step step) const {
    State* s = start();
    Disk& log = s->log;
    bool idle = !gated(*s, nullptr, kNone);
    bool held = gated(*s, nullptr, kLimitsUngated) || row_locked(*s);
    if (log.exists && !held && (log.minimum == 1 || visible_value(*s) >= 1)) {
        Parts parts = visible_parts(*s);
        log.row = static_cast<Count>(log.row + parts.net());
        log.parts.remove(parts);
        log.minimum = log.minimum == 0 ? 1 : 0;
        if (!broken(kEntryStays))
            drop_entry(s);
        step(kFine, "the minimum is changed");
    }
    start();
    if (!log.exists && idle) {
        log = {};
        s->memory.current = false;
        step(kFine, "the row is inserted again");
    }
    start();
    if (log.exists && (idle || broken(kNoTableLock))) {
        if (log.off)
            s->memory.current = false;
        log.off = !log.off;
        step(kFine, log.off ? "triggers are disabled" : "triggers are enabled");
    }
    for (int value = 0; value <= kMaximum; value++) {
        start();
        int row = value - visible_parts(*s).net();
        if (!log.off || row_locked(*s) || value < log.minimum || row < log.minimum ||
            row > kMaximum || row + log.parts.net() < log.minimum ||
            row + log.parts.net() > kMaximum || value + log.carts > kMaximum)
            continue;
        log.row = static_cast<Count>(row);
        log.outside = static_cast<Count>(kStocked - log.value() - log.carts);
        step(kFine, "the row is updated");
    }
}

// --- Folding, reading --------------------------------------------------------

Outcome Model::fold(State* s, int i) const {
    Folder& folder = s->folders[i];
    bool looks_first = broken(kLooksFirst);
    auto look = [&] {
        folder.row = static_cast<Count>(visible_row(*s)), folder.seen = visible_parts(*s);
    };
    switch (folder.phase) {
    case Folder::kIdle:
        if (!s->log.exists || visible_parts(*s).none())
            return kNotNow;
        if (looks_first) {
            look();
            folder.phase = Folder::kLooked;
            return kFine;
        }
        [[fallthrough]];
    case Folder::kLooked:
        if (row_locked(*s))
            return kNotNow;
        folder.phase = Folder::kLocked;
        return kFine;
    case Folder::kLocked:
        if (!looks_first)
            look();
        folder.phase = Folder::kReady;
        return kFine;
    case Folder::kReady:
        break;
    }
    int before = visible_value(*s);
    Parts deleted = broken(kSumsFirst) ? visible_parts(*s) : folder.seen;
    Parts& parts = s->log.parts;
    s->log.row = static_cast<Count>(s->log.row + folder.seen.net());
    parts.takes = static_cast<Count>(std::max(parts.takes - deleted.takes, 0));
    parts.returns = static_cast<Count>(std::max(parts.returns - deleted.returns, 0));
    folder = {};
    if (broken(kTruncates))
        s->reader.parts = 0;
    return visible_value(*s) == before ? kFine : kFoldChanges;
}

Outcome Model::read(State* s) const {
    Reader& reader = s->reader;
    if (reader.here)
        reader = {};
    else
        reader = {true, static_cast<Count>(visible_row(*s)),
                  static_cast<Count>(visible_parts(*s).net()),
                  static_cast<Count>(visible_value(*s))};
    return kFine;
}

// --- What is durable ---------------------------------------------------------

Outcome Model::flush(State* s) const {
    s->flushed = s->log;
    for (Slot& slot : s->slots) {
        slot.flushed = {};
        if (slot.now.phase != Phase::kPrepared)
            continue;
        slot.flushed = slot.now;
        slot.flushed.note = {};
        slot.flushed.listed = {};
        slot.flushed.read = slot.flushed.carts = 0;
    }
    return kFine;
}

// Commits that were not flushed are lost, the later ones first.
Outcome Model::crash(State* s) const {
    s->log = s->flushed;
    s->memory = {};
    s->folders = {};
    s->reader = {};
    for (Slot& slot : s->slots)
        slot.now = slot.flushed;
    return kFine;
}

// Makes states equal that differ only in the names of clients and folders, or in what is not used.
void Model::normalize(State* state) const {
    State& s = *state;
    if (!s.memory.loaded)
        s.memory = {};
    for (Slot& slot : s.slots) {
        Client& client = slot.now;
        if (client.step != Step::kLoads)
            client.read = client.carts = 0;
        if (!broken(kCartsReadEarly))
            client.carts = 0;
        if (client.note.none())
            client.decision = Decision::kNone;
    }
    auto larger = [](const auto& one, const auto& other) {
        return std::memcmp(&one, &other, sizeof one) > 0;
    };
    std::sort(s.slots.begin(), s.slots.end(), larger);
    std::sort(s.folders.begin(), s.folders.begin() + std::max(scope_.folders, 1), larger);
}

void Model::tell(const State&, const State& after, const char* words, int who, int) {
    if (who >= 0)
        std::printf("%c: ", 'A' + who);
    std::printf("%s (row %d, value %d, of the log %d", words, visible_row(after),
                visible_value(after), after.log.value());
    if (after.memory.loaded)
        std::printf(", inf %d, sup %d", after.memory.inf, after.memory.sup);
    std::printf(")\n");
}

// --- The rules, broken one by one --------------------------------------------

const search::Planted<Model> kPlanted[] = {
    {"E1", "inf is tested before the part and decremented after it", kTestsFirst, kBelow, kPlain},
    {"E1", "the list is written after the part", kListsLate, kRefused, kPlain},
    {"E2", "an undecided return counts", kReturnCounts, kBelow, kPlain},
    {"E2", "an undecided take makes room", kTakeMakesRoom, kAbove, kPlain},
    {"E2", "an own return funds an own take", kOwnReturn, kFine, kNested},
    {"E3", "a return counts with its commit record", kEarlyReturn, kBelow, kPlain},
    {"E3", "a take makes room with its commit record", kEarlyTake, kAbove, kPlain},
    {"E4", "a rollback keeps what it took", kAbortKeeps, kRefused, kPlain},
    {"E4", "a rollback to a savepoint keeps what it took", kSavepointKeeps, kRefused, kNested},
    {"E4", "the release of a savepoint is a commit", kReleaseCommits, kBelow, kNested},
    {"E4", "the release of a savepoint loses its list", kReleaseForgets, kRefused, kNested},
    {"E5", "PREPARE leaves no note", kPrepareForgets, kRefused, kPrepare},
    {"E5", "PREPARE is a commit", kPrepareCommits, kBelow, kPrepare},
    {"E5", "PREPARE is a rollback", kPrepareAborts, kBelow, kPrepare},
    {"E5", "notes are not settled before a refusal", kNoSettle, kRefused, kPrepare},
    {"E5", "a note is settled by the commit record", kSettleEarly, kBelow, kPrepare},
    {"E6", "a load does not lock the row", kLoadUnlocked, kBelow, kPrepare},
    {"E6", "a load leaves out takes in doubt", kLoadSkipsTakes, kBelow, kPrepare},
    {"E6", "a load counts returns in doubt", kLoadCountsReturns, kBelow, kPrepare},
    {"E6", "a load leaves no room for returns in doubt", kLoadSkipsReturns, kAbove, kPrepare},
    {"E6", "a load makes room of takes in doubt", kLoadCountsTakes, kAbove, kPrepare},
    {"E6", "a load leaves no notes", kLoadSkipsNotes, kRefused, kPrepare},
    {"E7", "a load reads a row that its own transaction has written", kLoadsOwn, kBelow, kDirect},
    {"E8", "an entry with undecided parts is evicted", kEvictsPending, kBelow, kPlain},
    {"E8", "without an entry nothing is tested", kSkipsTest, kBelow, kDirect},
    {"E9", "a fold takes its snapshot before the lock", kLooksFirst, kFoldChanges, kFolds},
    {"E9", "a fold truncates the journal", kTruncates, kSnapshotChanges, kFolds},
    {"E9", "a fold deletes other parts than it summed", kSumsFirst, kFoldChanges, kFolds},
    {"E9", "a reader adds parts of its snapshot to a newer row", kMixedRead, kSnapshotChanges,
     kFolds},
    {"E10", "set_escrow does not wait for undecided parts", kSetUngated, kBelow, kChanges},
    {"E10", "DELETE does not wait for undecided parts", kRemoveUngated, kOrphan, kChanges},
    {"E10", "a new minimum does not wait for undecided parts", kLimitsUngated, kBelow, kChanges},
    {"E10", "the gate ends with PREPARE", kGateEnds, kBelow, kChanges},
    {"E10", "set_escrow leaves the entry", kEntryStays, kBelow, kChanges},
    {"E11", "an entry of another epoch is used", kEpochIgnored, kBelow, kChanges},
    {"E11", "functions run while triggers are disabled", kWhileOff, kBelow, kChanges},
    {"E11", "triggers are disabled under undecided parts", kNoTableLock, kBelow, kChanges},
    {"E12", "sup is not tested", kMaximumUntested, kAbove, kPlain},
    {"E12", "what is pending is refused for good", kNoPending, kRefused, kPlain},
    {"E13", "the direct path tests the committed value only", kDirectBare, kBelow, kDirect},
    {"E13", "the direct path leaves the entry alone", kDirectAside, kBelow, kDirect},
    {"E13", "the direct path folds nothing", kDirectUnfolded, kRowCheck, kDirect},
    {"E14", "a reservation is ended without the lock of its row", kCartUnlocked, kLost, kCarts},
    {"E14", "a reservation is deleted before its part is inserted", kCartForgets, kLost, kCarts},
    {"E14", "no room is kept for reservations", kNoRoomKept, kAbove, kCarts},
    {"E14", "a load reads reservations of another snapshot than parts", kCartsReadEarly, kAbove,
     kCarts},
    {"E14", "DELETE of a row with reservations", kRemoveWithCart, kOrphan, kRemoves},
};

} // namespace

int main(int argc, char** argv) {
    return search::main<Model>(argc, argv, kScopes, kDeepScopes, kPlanted);
}
