// Visits every state that a small world of leases can get into and checks in each what
// docs/internals/leases.md promises; then breaks the rules one by one and expects to be caught.
// README.md says what is modelled.
//
//   lease              checks, as TAP
//   lease --deep       checks larger worlds too, which takes minutes
//   lease --trace R4   tells the shortest ways in which a world without R4 goes wrong

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <type_traits>

#include "search.h"

namespace {

// --- The world ---------------------------------------------------------------

using Token = uint8_t;
using Ticks = uint8_t; // what is left of a time, so that no state depends on how late it is

constexpr int kClients = 3;
constexpr int kKeys = 2;
constexpr Token kReserve = 2;
constexpr Ticks kForever = 255;

// Bounds name the first token that is not meant: those below `floor` are dead, those below `high`
// may have been given out.
struct Page {
    Token high = 1;
    Token epoch = 1;
    std::array<Token, kKeys> floor = {1, 1};
    Ticks horizon = 0;
    Token record = 0;
    Ticks record_expiry = 0;
    uint8_t record_key = 0;
    bool here = true;   // written on this timeline, since this boot
    bool mine = true;   // names the run that goes on
    bool filed = false; // names the run that saved the file
};

struct Lease {
    Token token = 0;
    Ticks expiry = 0; // 0: not held any more, but pinned
    uint8_t key = 0;
    bool shared = false;
};

using Leases = std::array<Lease, kClients>;

struct File {
    bool exists = false;
    Leases leases;
    std::array<Token, kKeys> lost = {1, 1};
};

struct Memory {
    Leases leases;
    std::array<Token, kKeys> lost = {1, 1};
    Token next = 1;
    Token before = 1; // token_high at the start
    Token intent = 0; // drawn for a long lease whose record is being written
    Ticks grace = 0;
    bool found = false; // the page named the run that was stopped last
    enum : uint8_t { kServing, kRecovering, kEpochWritten } phase = kServing;
};

// What a client has made of its lease. A release that comes too late answers that the lease was not
// held, and the client may go on trying.
enum class Return : uint8_t { kNone, kGaveBack, kTooLate };

struct Client {
    Token token = 0;
    Ticks told = 0; // how long it believes to hold the lease
    uint8_t key = 0;
    bool shared = false;
    bool bound = false;
    bool writing = false;            // in a transaction that has asserted the token
    Return returned = Return::kNone; // too late: only where that is broken
    bool excused = false;            // a failover has lost what the server knew of it

    bool gave_back() const { return returned == Return::kGaveBack; }
};

// What the former primary can confirm as a standby: how long the last short lease lasts that it had
// when it was stopped cleanly.
struct Stopped {
    bool exists = false;
    bool runs = false; // as the primary again
    Ticks left = 0;
};

// A confirmation under way to the new primary.
struct Confirmation {
    bool exists = false;
    Ticks left = 0; // however long it is under way
};

struct State {
    Page page, previous;
    bool published = true; // else the memory still has what the page was before its last write
    Token timeline = 1;    // the first token that its number allows
    File file;
    Stopped stopped;
    Confirmation confirmation;
    Memory memory;
    std::array<Client, kClients> clients;
    Token last = 0, last_exclusive = 0; // that were granted

    const Page& known() const { return published ? page : previous; }
};

static_assert(std::has_unique_object_representations_v<State>, "states are compared as bytes");

// What may happen, so that a world can be rich in one thing and poor in another.
struct Scope {
    const char* name;
    int clients;
    int keys;
    Ticks ttl; // of a short lease
    bool shared, lasting, bound, stops, lossy;
    bool planned = false; // switchovers

    // A horizon is moved further than needed, and a long lease outlives the longest grace.
    Ticks span() const { return ttl + 1; }
    Ticks lasting_ttl() const { return span() + 1; }
};

constexpr Scope kAll = {"all but shared leases", 2, 1, 1, false, true, true, true, true};
constexpr Scope kLong = {"long leases", 2, 1, 2, false, true, true, true, false};
constexpr Scope kMany = {"three clients", 3, 1, 2, false, false, true, true, true};
constexpr Scope kPaths = {"parent and child", 2, 2, 2, false, false, true, true, true};
constexpr Scope kShared = {"shared leases", 2, 1, 2, true, false, false, false, false};
constexpr Scope kPlanned = {"planned switchovers", 2, 1, 2, false, false, false, true, true, true};
constexpr const Scope* kScopes[] = {&kAll, &kLong, &kMany, &kPaths, &kShared, &kPlanned};

constexpr Scope kDeepAll = {"all, more time", 2, 1, 2, false, true, true, true, true};
constexpr Scope kDeepPaths = {"long paths", 2, 2, 2, false, true, false, false, false};
constexpr Scope kDeepShared = {"three share", 3, 1, 2, true, false, false, false, false};
constexpr Scope kDeepPlanned = {
    "switchovers, long leases", 2, 1, 1, false, true, false, true, true, true};
constexpr const Scope* kDeepScopes[] = {&kDeepAll, &kDeepPaths, &kDeepShared, &kDeepPlanned};

enum class Outcome {
    kNotNow,
    kFine,
    kDoubleGrant,
    kLateCommit,
    kGrantOverTransaction,
    kTokenAgain,
    kHolderRefused,
};
using enum Outcome;

constexpr const char* kOutcomeWords[] = {
    "",
    "nothing goes wrong",
    "a double grant (S1)",
    "a commit after a later grant (S2)",
    "a grant over an open transaction (S2)",
    "a token that does not grow (S3)",
    "a holder is refused in its time",
};

enum class Fault {
    kNone,
    kEarlyAnswer,
    kNoGrace,
    kUnreserved,
    kLateFloor,
    kFloorNotSaved,
    kLateRelease,
    kEndedWhileStopped,
    kFloorIgnored,
    kEpochIgnored,
    kForeignToken,
    kReclaimedShared,
    kReclaimedExclusive,
    kEpochStays,
    kFirstHasIt,
    kLastHasIt,
    kExpiryUnpins,
    kReleaseUnpins,
    kBreakUnpins,
    kNoRecord,
    kDeadRecord,
    kAnyRun,
    kRunNotWritten,
    kSavedInGrace,
    kSavedTooSoon,
    kHorizonTrusted,
    kNoTimeline,
    kTimelineOnce,
    kGraceNotWritten,
    kFileAfterFailover,
    kConfirmsAfterStart,
    kConfirmsInGrace,
    kAnyRunConfirmed,
    kTimeIgnored,
    kEndedUnwritten,
    kNotTheNext,
};
using enum Fault;

bool excludes(bool shared, bool other_shared) { return !shared || !other_shared; }

Lease* find(State* s, Token token) {
    for (Lease& lease : s->memory.leases)
        if (lease.token == token)
            return &lease;
    return nullptr;
}

void lose(State* s, Lease* lease) {
    Token& lost = s->memory.lost[lease->key];
    lost = std::max<Token>(lost, lease->token + 1);
    *lease = {};
}

bool pinned(const State& s, const Lease& lease) {
    return std::any_of(s.clients.begin(), s.clients.end(), [&](const Client& client) {
        return client.writing && client.token == lease.token;
    });
}

void settle(State* s) {
    for (Lease& lease : s->memory.leases)
        if (lease.token != 0 && lease.expiry == 0 && !pinned(*s, lease))
            lose(s, &lease);
}

bool has_unsaved_floor(const State& s) {
    return s.memory.lost[0] > s.known().floor[0] || s.memory.lost[1] > s.known().floor[1];
}

void end_sessions(State* s) {
    for (Client& client : s->clients) {
        if (client.bound)
            client.told = 0;
        client.bound = client.writing = false;
    }
}

Outcome check_holders(const State& s) {
    for (const Client& one : s.clients)
        for (const Client& other : s.clients)
            if (&one < &other && one.told > 0 && other.told > 0 && !one.excused && !other.excused &&
                excludes(one.shared, other.shared))
                return kDoubleGrant;
    return kFine;
}

// --- The rules ---------------------------------------------------------------

enum class Kind { kShortLived, kLasting, kBound };
enum class Start { kRestart, kFailover, kLossyFailover };

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
            if (outcome != kNotNow)
                visit(after, outcome, words, client);
        };
        step(tick(start()), "time passes");
        step(publish(start()), "the write is published");
        each_write(state, start, step);
        for (int i = 0; i < scope_.clients; i++)
            each_act(i, start, step);
        for (int i = 0; i < kClients; i++)
            step(break_lease(&after, &start()->memory.leases[i]), "the lease is broken");

        using enum Start;
        step(crash(start(), kRestart, false), "a crash, and a start");
        step(crash(start(), kFailover, false), "a failover, or a start of the machine");
        if (scope_.lossy)
            step(crash(start(), kLossyFailover, false), "a failover loses the last write");
        if (scope_.stops) {
            step(stop(start()), "a clean stop, and a start");
            step(crash(start(), kRestart, true), "a crash, and a start finds the old file");
            step(crash(start(), kFailover, true), "a failover finds the old file");
        }
        if (scope_.planned) {
            step(switch_over(start()), "a planned switchover");
            step(confirm(start()), "the former primary confirms");
            step(end_grace(start()), "the grace is ended");
        }
        if (scope_.stops && scope_.lossy)
            step(crash(start(), kLossyFailover, true),
                 "a failover loses the last write and finds the old file");
    }

    void normalize(State* state) const;

    static const char* words(Outcome outcome) { return kOutcomeWords[static_cast<int>(outcome)]; }

    static void tell(const State& before, const State& after, const char* words, int who, int now);

private:
    bool broken(Fault fault) const { return fault_ == fault; }

    bool covers(const State& s) const {
        return (s.known().here && s.known().horizon >= scope_.ttl) || broken(kEarlyAnswer);
    }

    bool in_use(const State& s) const { return s.known().mine || broken(kRunNotWritten); }

    bool may_grant(const State& s, bool shared) const {
        const Memory& memory = s.memory;
        return memory.grace == 0 && in_use(s) &&
               (memory.phase == Memory::kServing || broken(kEpochStays)) &&
               (!has_unsaved_floor(s) || broken(kLateFloor)) &&
               std::none_of(memory.leases.begin(), memory.leases.end(), [&](const Lease& lease) {
                   return lease.token != 0 && excludes(shared, lease.shared);
               });
    }

    bool may_reclaim(const State& s, const Client& client) const {
        return s.memory.grace > 0 && client.token < s.memory.before &&
               (client.token >= s.known().epoch || broken(kEpochIgnored)) &&
               (client.token >= s.memory.lost[client.key] || broken(kFloorIgnored));
    }

    template <typename Start, typename Step>
    void each_write(const State& state, Start start, Step step) const;
    template <typename Start, typename Step>
    void each_act(int i, Start start, Step step) const;
    template <typename Change>
    Outcome write(State* s, bool needed, Change change) const;

    Outcome publish(State* s) const;
    Outcome acquire(State* s, Client* client, Kind kind, uint8_t key, bool shared) const;
    Outcome renew(State* s, Client* client, Kind kind) const;
    Outcome reclaim(State* s, Client* client) const;
    Outcome reclaim_foreign(State* s, Client* client) const;
    Outcome refuse(const State& s, Client* client) const;
    Outcome release(State* s, Client* client) const;
    Outcome assert_lease(State* s, Client* client) const;
    Outcome commit(State* s, Client* client) const;
    Outcome leave(State* s, Client* client) const;
    Outcome break_lease(State* s, Lease* lease) const;
    Outcome tick(State* s) const;
    Outcome stop(State* s) const;
    Outcome switch_over(State* s) const;
    Outcome confirm(State* s) const;
    Outcome end_grace(State* s) const;
    Outcome crash(State* s, Start kind, bool with_file) const;
    bool stop_server(State* s, bool in_grace) const;
    static void change_timeline(State* s);
    void load(State* s, bool with_file) const;

    const Scope& scope_;
    Fault fault_;
};

// A write is flushed at once, but others rely on it only when it is published. Writers take turns.
template <typename Change>
Outcome Model::write(State* s, bool needed, Change change) const {
    if (!needed || !s->published)
        return kNotNow;
    s->previous = s->page;
    s->published = false;
    Page& page = s->page;
    // A horizon of another timeline means nothing here. But leases of there may last as long as the
    // grace, and the next crash takes its grace from this page.
    if (!page.here && !broken(kGraceNotWritten))
        page.horizon = s->memory.grace;
    page.here = true;
    if (!broken(kRunNotWritten)) {
        page.mine = true;
        page.filed = false;
    }
    change(page);
    return kFine;
}

template <typename Start, typename Step>
void Model::each_write(const State& state, Start start, Step step) const {
    const Memory& memory = state.memory;
    const Page& known = state.known();
    step(write(start(), !in_use(state), [](Page&) {}), "write: the run");
    step(write(start(), !covers(state),
               [&](Page& page) { page.horizon = std::max(page.horizon, scope_.span()); }),
         "write: the horizon");
    step(write(start(), memory.next >= known.high,
               [&](Page& page) { page.high = memory.next + kReserve; }),
         "write: more tokens");
    step(write(start(), has_unsaved_floor(state), [&](Page& page) { page.floor = memory.lost; }),
         "write: the floor");

    bool recovered = memory.phase == Memory::kRecovering && memory.grace == 0;
    State* after = start();
    after->memory.phase = Memory::kEpochWritten;
    step(write(after, recovered && !broken(kEpochStays),
               [&](Page& page) { page.epoch = memory.next; }),
         "write: the epoch");
    if (!scope_.lasting)
        return;

    auto record = [&](Token token, uint8_t key) {
        return [=, this](Page& page) {
            page.record = token;
            page.record_expiry = scope_.lasting_ttl();
            page.record_key = key;
        };
    };
    bool intended = memory.intent != 0 && memory.intent == known.record;
    for (uint8_t key = 0; key < scope_.keys; key++) {
        after = start();
        after->memory.intent = after->memory.next++;
        step(write(after, !intended && may_grant(state, false) && memory.next < known.high,
                   record(memory.next, key)),
             "write: the record of a long lease, to be granted then");
    }
    const Lease& lease = memory.leases[0];
    bool renewable = lease.expiry > 0 && lease.expiry != kForever &&
                     (known.record != lease.token || known.record_expiry < scope_.lasting_ttl());
    step(write(start(), renewable, record(lease.token, lease.key)), "write: the record, renewed");
    after = start();
    bool stale = known.record != 0 && !intended && !find(after, known.record);
    step(write(after, stale,
               [](Page& page) { page.record = page.record_expiry = page.record_key = 0; }),
         "write: the record is cleared");
}

Outcome Model::publish(State* s) const {
    if (s->published)
        return kNotNow;
    s->published = true;
    if (s->memory.phase == Memory::kEpochWritten)
        s->memory.phase = Memory::kServing;
    return kFine;
}

// --- Clients -----------------------------------------------------------------

template <typename Start, typename Step>
void Model::each_act(int i, Start start, Step step) const {
    State* s = start();
    auto client = [&] { return &start()->clients[i]; };
    bool late = client()->gave_back();
    for (uint8_t key = 0; key < scope_.keys; key++) {
        step(acquire(s, client(), Kind::kShortLived, key, false), "acquires", i);
        if (scope_.shared)
            step(acquire(s, client(), Kind::kShortLived, key, true), "acquires, shared", i);
        if (scope_.lasting)
            step(acquire(s, client(), Kind::kLasting, key, false), "acquires, long", i);
        if (scope_.bound)
            step(acquire(s, client(), Kind::kBound, key, false), "acquires, with the session", i);
    }
    step(renew(s, client(), Kind::kShortLived), late ? "late renewal" : "renews", i);
    if (scope_.lasting)
        step(renew(s, client(), Kind::kLasting), late ? "late renewal, long" : "renews, long", i);
    step(reclaim_foreign(s, client()), "reclaims with a token of another", i);
    step(release(s, client()), "releases", i);
    step(assert_lease(s, client()), "asserts", i);
    step(commit(s, client()), "commits", i);
    step(leave(s, client()), "leaves", i);
}

Outcome Model::acquire(State* s, Client* client, Kind kind, uint8_t key, bool shared) const {
    Memory& memory = s->memory;
    Lease* free = find(s, 0);
    if (client->token != 0 || !free || !may_grant(*s, shared))
        return kNotNow;
    Lease lease = {memory.next, scope_.ttl, key, shared};
    if (kind == Kind::kLasting && !broken(kNoRecord)) {
        const Page& known = s->known();
        if (memory.intent == 0 || known.record != memory.intent || known.record_key != key)
            return kNotNow;
        lease.token = memory.intent;
        lease.expiry = known.record_expiry;
    } else {
        if (memory.next >= s->known().high && !broken(kUnreserved))
            return kNotNow;
        if (kind == Kind::kShortLived && !covers(*s))
            return kNotNow;
        if (kind != Kind::kShortLived)
            lease.expiry = kind == Kind::kBound ? kForever : scope_.lasting_ttl();
        memory.next++;
    }
    Outcome outcome = lease.token > s->last ? kFine : kTokenAgain;
    for (const Client& other : s->clients)
        if (other.writing && excludes(shared, other.shared))
            outcome = kGrantOverTransaction;
    *free = lease;
    *client = {lease.token,          lease.expiry, key,           shared,
               kind == Kind::kBound, false,        Return::kNone, false};
    memory.intent = 0; // drawn earlier, it would be granted after a larger one
    s->last = lease.token;
    if (!shared)
        s->last_exclusive = lease.token;
    return outcome == kFine ? check_holders(*s) : outcome;
}

// Who gave its token back may still have a renewal on its way, whose answer nobody believes.
Outcome Model::renew(State* s, Client* client, Kind kind) const {
    bool lasting = kind == Kind::kLasting;
    if (client->token == 0 || client->bound)
        return kNotNow;
    Lease* lease = find(s, client->token);
    if (!lease || lease->expiry == 0)
        return lasting ? kNotNow : reclaim(s, client);
    if (!in_use(*s) || (lasting ? s->known().record != client->token : !covers(*s)))
        return kNotNow;
    Ticks expiry = std::max(lease->expiry, lasting ? s->known().record_expiry : scope_.ttl);
    if (expiry == lease->expiry && (client->gave_back() || client->told == expiry))
        return kNotNow;
    lease->expiry = expiry;
    if (client->gave_back())
        return kFine;
    client->told = expiry;
    return check_holders(*s);
}

Outcome Model::reclaim(State* s, Client* client) const {
    if (!may_reclaim(*s, *client) || find(s, client->token))
        return refuse(*s, client);
    if (!in_use(*s) || !covers(*s))
        return kNotNow;
    bool shared = (client->shared || broken(kReclaimedShared)) && !broken(kReclaimedExclusive);
    for (Lease& other : s->memory.leases) {
        if (other.token == 0 || !excludes(shared, other.shared))
            continue;
        if (pinned(*s, other))
            return kNotNow;
        bool has_it = other.token > client->token || broken(kFirstHasIt);
        if (has_it && !broken(kLastHasIt))
            return refuse(*s, client);
        other = {};
    }
    Lease* free = find(s, 0);
    if (!free)
        return kNotNow;
    *free = {client->token, scope_.ttl, client->key, shared};
    if (client->gave_back())
        return kFine;
    client->told = scope_.ttl;
    return check_holders(*s);
}

// A role that was given no token reclaims with one that it has seen or guessed.
Outcome Model::reclaim_foreign(State* s, Client* client) const {
    if (!broken(kForeignToken) || client->token != 0 || s->last == 0)
        return kNotNow;
    client->token = s->last;
    return reclaim(s, client);
}

// What is durable does not tell all holders from the dead: not those of before the last crash but
// one, and not those of a shared lease that are older than one that was lost.
Outcome Model::refuse(const State& s, Client* client) const {
    if (client->told == 0)
        return kNotNow;
    client->told = 0;
    bool lives = client->token < s.memory.before && client->token >= s.known().epoch &&
                 (client->token >= s.memory.lost[client->key] || !client->shared);
    return lives && !client->excused ? kHolderRefused : kFine;
}

Outcome Model::release(State* s, Client* client) const {
    if (client->token == 0 || client->returned != Return::kNone)
        return kNotNow;
    Lease* lease = find(s, client->token);
    bool was_held = lease && lease->expiry > 0;
    if (!was_held && client->told == 0 && !(lease && broken(kLateRelease)))
        return kNotNow;
    if (was_held && client->writing && !broken(kReleaseUnpins))
        lease->expiry = 0;
    else if (was_held)
        *lease = {};
    if (was_held)
        client->returned = Return::kGaveBack;
    else if (lease && broken(kLateRelease))
        client->returned = Return::kTooLate;
    client->bound = false;
    client->told = 0;
    return kFine;
}

Outcome Model::assert_lease(State* s, Client* client) const {
    Lease* lease = find(s, client->token);
    if (client->token == 0 || client->gave_back() || client->writing || !lease ||
        lease->expiry == 0)
        return kNotNow;
    client->writing = true;
    return kFine;
}

Outcome Model::commit(State* s, Client* client) const {
    if (!client->writing)
        return kNotNow;
    client->writing = false;
    Lease* lease = find(s, client->token);
    if (lease && lease->expiry == 0 && client->returned != Return::kNone)
        *lease = {};
    if (client->returned == Return::kTooLate)
        client->returned = Return::kNone;
    settle(s);
    Token successor = client->shared ? s->last_exclusive : s->last;
    return client->token < successor && !client->excused ? kLateCommit : kFine;
}

Outcome Model::leave(State* s, Client* client) const {
    if (client->token == 0 || client->writing)
        return kNotNow;
    if (Lease* lease = find(s, client->token); lease && client->bound)
        lose(s, lease);
    *client = {};
    return kFine;
}

Outcome Model::break_lease(State* s, Lease* lease) const {
    if (lease->expiry == 0)
        return kNotNow;
    for (Client& client : s->clients) {
        if (client.token == lease->token) {
            client.told = 0;
            client.bound = false;
        }
    }
    lease->expiry = 0;
    if (broken(kBreakUnpins))
        lose(s, lease);
    settle(s);
    return kFine;
}

// --- Time and crashes --------------------------------------------------------

Outcome Model::tick(State* s) const {
    auto pass = [](Ticks& left) {
        if (left > 0 && left != kForever)
            left--;
        return left;
    };
    for (Page* page : {&s->page, &s->previous}) {
        pass(page->horizon);
        pass(page->record_expiry);
    }
    for (Lease& lease : s->file.leases)
        pass(lease.expiry);
    for (Lease& lease : s->memory.leases)
        if (lease.expiry > 0 && pass(lease.expiry) == 0 && broken(kExpiryUnpins))
            lose(s, &lease);
    for (Client& client : s->clients)
        pass(client.told);
    pass(s->memory.grace);
    pass(s->stopped.left);
    settle(s);
    return kFine;
}

// Before the first grant nothing is saved: the file would have to tell of the grace and of the
// epoch. The start is then like one after a crash.
bool Model::stop_server(State* s, bool in_grace) const {
    bool recovering = s->memory.phase != Memory::kServing;
    if (recovering && !in_grace)
        return false;
    end_sessions(s);
    for (Lease& lease : s->memory.leases)
        if (lease.expiry == kForever)
            lose(s, &lease);
    settle(s);
    s->stopped = {true, false, 0};
    if (!broken(kAnyRunConfirmed))
        s->confirmation = {}; // of a stop before
    for (const Lease& lease : s->memory.leases)
        if (lease.token != s->page.record || lease.expiry > s->page.record_expiry)
            s->stopped.left = std::max(s->stopped.left, lease.expiry);
    // A run that was not used saves under the number that it has found.
    if (s->page.mine)
        s->previous.filed = s->previous.mine;
    s->page.filed = true;
    return true;
}

Outcome Model::stop(State* s) const {
    if (!stop_server(s, broken(s->memory.grace > 0 ? kSavedInGrace : kSavedTooSoon)))
        return kNotNow;
    if (broken(kConfirmsAfterStart))
        s->stopped.runs = true;
    else
        s->stopped = {};
    s->file = {true, s->memory.leases, broken(kFloorNotSaved) ? s->page.floor : s->memory.lost};
    load(s, true);
    return kFine;
}

// Another server takes over, which has all that was written. The former primary follows it.
Outcome Model::switch_over(State* s) const {
    if (!stop_server(s, broken(kConfirmsInGrace)))
        return kNotNow;
    s->file = {};
    change_timeline(s);
    load(s, false);
    return kFine;
}

Outcome Model::confirm(State* s) const {
    if (!s->stopped.exists || s->stopped.runs || s->memory.grace == 0)
        return kNotNow;
    s->confirmation = {true, s->stopped.left};
    return kFine;
}

Outcome Model::end_grace(State* s) const {
    const Confirmation& confirmation = s->confirmation;
    if (!confirmation.exists || !(s->memory.found || broken(kAnyRunConfirmed)))
        return kNotNow;
    // The page has the whole grace as its horizon, for which a long lease may be prolonged.
    if (!in_use(*s) && !broken(kEndedUnwritten))
        return kNotNow;
    Ticks left = broken(kTimeIgnored) ? 0 : confirmation.left;
    s->memory.grace = std::min(s->memory.grace, left);
    s->confirmation = {};
    return kFine;
}

// A file is removed when it is read, but the directory may have forgotten that.
Outcome Model::crash(State* s, Start kind, bool with_file) const {
    if (with_file && !s->file.exists)
        return kNotNow;
    end_sessions(s);
    if (kind != Start::kRestart)
        change_timeline(s);
    if (kind == Start::kLossyFailover) {
        // Takeovers and long leases of the moment that is lost are not known. Nobody says they are.
        const Page &was = s->page, &is = s->previous;
        for (Client& client : s->clients) {
            Token token = client.token;
            bool taken = (token < was.floor[client.key] && token >= is.floor[client.key]) ||
                         (token < was.epoch && token >= is.epoch);
            bool lasting =
                token == was.record && (token != is.record || was.record_expiry > is.record_expiry);
            client.excused |= token != 0 && (taken || lasting);
        }
        s->page = s->previous;
        // A server that nobody knows any more may have taken over in between.
        if (!s->stopped.runs && !broken(kNotTheNext)) {
            s->stopped = {};
            s->confirmation = {};
        }
    }
    if (kind != Start::kRestart)
        s->stopped.runs = false;
    load(s, with_file);
    return kFine;
}

void Model::change_timeline(State* s) {
    s->timeline = std::max<Token>({s->page.high, s->memory.next, Token(s->last + 1)});
    s->page.here = s->previous.here = false;
}

void Model::load(State* s, bool with_file) const {
    Page& page = s->page;
    Memory& memory = s->memory;
    memory = {};
    memory.lost = page.floor;
    memory.before = memory.next = page.high;
    if (!broken(kNoTimeline) && !(page.here && broken(kTimelineOnce)))
        memory.next = std::max(memory.next, s->timeline);
    if (with_file && (page.filed || broken(kAnyRun)) && (page.here || broken(kFileAfterFailover))) {
        memory.leases = s->file.leases;
        memory.lost = s->file.lost;
        settle(s);
        if (broken(kEndedWhileStopped))
            memory.lost = s->file.lost;
    } else {
        memory.phase = Memory::kRecovering;
        memory.found = scope_.planned && page.filed;
        memory.grace = page.here || broken(kHorizonTrusted) ? page.horizon : scope_.span();
        if (broken(kNoGrace))
            memory.grace = 0;
        // A later renewal for a short time is not in the record.
        Ticks expiry = std::max(page.record_expiry, memory.grace);
        bool dead = page.record < page.floor[page.record_key] && !broken(kDeadRecord);
        if (page.record_expiry > 0 && !dead)
            memory.leases[0] = {page.record, expiry, page.record_key, false};
    }
    page.mine = s->previous.mine = false;
    s->published = true;
}

// --- Equal states ------------------------------------------------------------

uint64_t bits(const Client& client) { return std::bit_cast<uint64_t>(client); }
uint32_t bits(const Lease& lease) { return std::bit_cast<uint32_t>(lease); }

// Makes states equal that nobody can tell apart: clients have no names, and of tokens only the
// order counts. So there is an end of new states, however many grants and crashes there are.
void Model::normalize(State* state) const {
    State& s = *state;
    Memory& memory = s.memory;
    for (Page* page : {&s.page, &s.previous}) {
        if (!page->here && !broken(kHorizonTrusted) && !broken(kGraceNotWritten))
            page->horizon = 0;
        if (page->record_expiry == 0 ||
            (page->record < page->floor[page->record_key] && !broken(kDeadRecord)))
            page->record = page->record_expiry = page->record_key = 0;
    }
    if (s.published && !scope_.lossy)
        s.previous = s.page;
    if (!s.page.filed && !s.previous.filed && !broken(kAnyRun))
        s.file = {};
    if (!scope_.planned ||
        (!s.page.filed && !s.previous.filed && !memory.found && !broken(kAnyRunConfirmed))) {
        s.stopped = {};
        s.confirmation = {};
    }
    if (s.timeline <= s.page.high)
        s.timeline = 1;
    if (memory.grace == 0) {
        memory.before = memory.next;
        memory.found = false;
    }

    // Bounds matter as to which of the tokens that somebody knows are below.
    const Token next = memory.next;
    uint64_t tokens = uint64_t{1} << next | uint64_t{1} << s.last;
    auto each_token = [&](auto visit) {
        for (Client& client : s.clients)
            visit(client.token);
        for (Leases* leases : {&memory.leases, &s.file.leases})
            for (Lease& lease : *leases)
                visit(lease.token);
        visit(s.page.record);
        visit(s.previous.record);
        visit(memory.intent);
    };
    each_token([&](Token token) { tokens |= uint64_t{1} << token; });
    for (int key = 0; key < kKeys; key++)
        if (memory.lost[key] > s.known().floor[key])
            tokens |= uint64_t{1} << (memory.lost[key] - 1);
    std::array<Token, 64> ranks;
    Token rank = 0, end = static_cast<Token>(std::bit_width(tokens));
    for (Token token = 0; token < end; token++) {
        ranks[token] = rank;
        rank += token == 0 || (tokens >> token & 1) != 0;
    }
    auto rename = [&](Token& token) { token = token < end ? ranks[token] : rank; };
    // Beyond the next token it matters how many are reserved.
    for (Page* page : {&s.page, &s.previous}) {
        Token reserved = page->high > next ? page->high - next : 0;
        page->high = ranks[std::min(page->high, next)] + reserved;
    }
    each_token(rename);
    for (Page* page : {&s.page, &s.previous})
        for (Token* bound : {&page->epoch, &page->floor[0], &page->floor[1]})
            rename(*bound);
    for (auto* lost : {&memory.lost, &s.file.lost})
        for (Token& bound : *lost)
            rename(bound);
    for (Token* bound : {&s.timeline, &s.last, &s.last_exclusive, &memory.before, &memory.next})
        rename(*bound);

    auto larger = [](const auto& one, const auto& other) { return bits(one) > bits(other); };
    std::sort(s.clients.begin(), s.clients.end(), larger);
    std::sort(memory.leases.begin(), memory.leases.end(), larger);
    std::sort(s.file.leases.begin(), s.file.leases.end(), larger);
}

void Model::tell(const State& before, const State& after, const char* words, int who, int now) {
    std::printf("at %d  ", now);
    const Page& page = after.page;
    if (before.published && !after.published) {
        std::printf("%s (tokens below %d, horizon %d, epoch %d, floor %d)\n", words, page.high,
                    now + page.horizon, page.epoch, page.floor[0]);
    } else if (who < 0) {
        std::printf("%s\n", words);
    } else {
        const Client& client = after.clients[who];
        std::printf("%c: %s, token %d", 'A' + who, words,
                    std::max(client.token, before.clients[who].token));
        if (client.told > 0 && client.told != kForever)
            std::printf(", holds until %d", now + client.told);
        std::printf("\n");
    }
}

// --- The rules, broken one by one ----------------------------------------------

const search::Planted<Model> kPlanted[] = {
    {"R1", "an answer comes before the horizon is durable", kEarlyAnswer, kDoubleGrant, kAll},
    {"R2", "there is no grace", kNoGrace, kDoubleGrant, kAll},
    {"R3", "tokens are given out unreserved", kUnreserved, kTokenAgain, kAll},
    {"R4", "a grant does not wait for the floor", kLateFloor, kLateCommit, kAll},
    {"R4", "a clean stop forgets what was lost", kFloorNotSaved, kLateCommit, kAll},
    {"R4", "a release of an expired lease gives it back", kLateRelease, kLateCommit, kAll},
    {"R4", "what ended before a start was never there", kEndedWhileStopped, kLateCommit, kLong},
    {"R5", "a reclaim ignores the floor", kFloorIgnored, kLateCommit, kAll},
    {"R5", "a reclaim ignores the epoch", kEpochIgnored, kLateCommit, kAll},
    {"R5", "a reclaim accepts a token of another role", kForeignToken, kDoubleGrant, kAll},
    {"R5", "a reclaimed lease is taken as shared", kReclaimedShared, kDoubleGrant, kShared},
    {"R5", "a reclaimed lease is taken as exclusive", kReclaimedExclusive, kDoubleGrant, kShared},
    {"R6", "the first grant leaves the epoch", kEpochStays, kLateCommit, kAll},
    {"R7", "the first to reclaim has it", kFirstHasIt, kHolderRefused, kAll},
    {"R7", "the last to reclaim has it", kLastHasIt, kDoubleGrant, kMany},
    {"R8", "an expired lease is free though pinned", kExpiryUnpins, kGrantOverTransaction, kAll},
    {"R8", "a released lease is free though pinned", kReleaseUnpins, kGrantOverTransaction, kAll},
    {"R8", "a broken lease is free though pinned", kBreakUnpins, kGrantOverTransaction, kAll},
    {"R9", "a long lease is granted before its record", kNoRecord, kDoubleGrant, kAll},
    {"R9", "a record counts though its token is dead", kDeadRecord, kLateCommit, kAll},
    {"R10", "a file of any run counts", kAnyRun, kDoubleGrant, kAll},
    {"R10", "the first use does not write the run", kRunNotWritten, kDoubleGrant, kAll},
    {"R10", "a stop in the grace saves leases", kSavedInGrace, kDoubleGrant, kAll},
    {"R10", "a stop before the first grant saves leases", kSavedTooSoon, kLateCommit, kAll},
    {"R11", "a failover trusts the horizon", kHorizonTrusted, kDoubleGrant, kAll},
    {"R11", "tokens go on without the timeline", kNoTimeline, kTokenAgain, kAll},
    {"R11", "the timeline counts until the page is written", kTimelineOnce, kTokenAgain, kAll},
    {"R11", "the page is written without the grace", kGraceNotWritten, kDoubleGrant, kAll},
    {"R11", "a file counts after a failover", kFileAfterFailover, kDoubleGrant, kAll},
    {"R12", "a primary that ran again since confirms", kConfirmsAfterStart, kDoubleGrant, kPlanned},
    {"R12", "a primary stopped in its grace confirms", kConfirmsInGrace, kDoubleGrant, kPlanned},
    {"R12", "the run does not matter", kAnyRunConfirmed, kDoubleGrant, kPlanned},
    {"R12", "the time left does not count", kTimeIgnored, kDoubleGrant, kPlanned},
    {"R12", "the page has not the whole grace", kEndedUnwritten, kHolderRefused, kDeepPlanned},
    {"R12", "another primary was in between", kNotTheNext, kDoubleGrant, kPlanned},
};

} // namespace

int main(int argc, char** argv) {
    return search::main<Model>(argc, argv, kScopes, kDeepScopes, kPlanted);
}
