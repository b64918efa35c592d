// The search that the models share: visits every state that a model can get into, breadth first,
// and ends at the first step that goes wrong. Prints TAP.
//
// A model is a class `Model(scope, fault)` with `State`, `Outcome`, `Scope` and `Fault`, and
//   each_step(state, visit)   visit(after, outcome, words, client) for every step from `state`
//   normalize(&state)         makes states equal that differ in nothing that matters
//   words(outcome)            what goes wrong
//   tell(before, after, words, client, now)   prints a step of a counterexample
// Outcome::kFine, Fault::kNone: nothing goes wrong, nothing is broken.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <future>
#include <string_view>
#include <thread>
#include <vector>

namespace search {

// A rule to break, what that must lead to, and a world in which it does.
template <typename Model>
struct Planted {
    const char* rule;
    const char* words;
    typename Model::Fault fault;
    typename Model::Outcome expected;
    const typename Model::Scope& scope;
};

// --- The search --------------------------------------------------------------

template <typename State>
uint64_t fingerprint(const State& state) {
    uint64_t words[(sizeof(State) + 7) / 8] = {};
    std::memcpy(words, &state, sizeof(State));
    uint64_t print = 0;
    for (uint64_t word : words) {
        auto product =
            static_cast<unsigned __int128>(print ^ word ^ 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;
        print = static_cast<uint64_t>(product) + static_cast<uint64_t>(product >> 64) * 3;
    }
    return print == 0 ? 1 : print;
}

// The states that were seen, by fingerprint: that two of thirty million share one has a chance of
// one in forty thousand.
class Seen {
public:
    bool add(uint64_t print) {
        if (count_ * 2 >= slots_.size()) {
            std::vector<uint64_t> old(slots_.size() * 2);
            old.swap(slots_);
            for (uint64_t one : old)
                if (one != 0)
                    put(one);
        }
        return put(print) && ++count_ != 0;
    }

private:
    bool put(uint64_t print) {
        size_t mask = slots_.size() - 1, slot = print & mask;
        while (slots_[slot] != 0 && slots_[slot] != print)
            slot = (slot + 1) & mask;
        bool fresh = slots_[slot] == 0;
        slots_[slot] = print;
        return fresh;
    }

    std::vector<uint64_t> slots_ = std::vector<uint64_t>(1 << 12);
    size_t count_ = 0;
};

template <typename Outcome>
struct Result {
    Outcome outcome = Outcome::kFine;
    size_t states = 0;
    std::vector<uint64_t> path; // the fingerprints of a shortest way there
};

// Ends at the first step that goes wrong: in the way that is expected of a fault, else in any.
template <typename Model>
Result<typename Model::Outcome> find_failure(const Model& model, typename Model::Outcome expected) {
    using State = typename Model::State;
    using Outcome = typename Model::Outcome;
    struct Visited {
        uint64_t print;
        uint32_t from;
    };
    Result<Outcome> result;
    Seen seen;
    std::vector<Visited> visited;
    std::vector<State> level(1), next;
    model.normalize(&level[0]);
    visited.push_back({fingerprint(level[0]), 0});
    seen.add(visited[0].print);
    for (uint32_t from = 0; !level.empty(); level.swap(next), next.clear()) {
        for (const State& state : level) {
            model.each_step(state, [&](State& after, Outcome outcome, const char*, int) {
                if (result.outcome != Outcome::kFine)
                    return;
                model.normalize(&after);
                uint64_t print = fingerprint(after);
                if (seen.add(print)) {
                    visited.push_back({print, from});
                    next.push_back(after);
                }
                if (outcome == Outcome::kFine ||
                    (expected != Outcome::kFine && outcome != expected))
                    return;
                result.outcome = outcome;
                result.path.push_back(print);
                for (uint32_t at = from; at != 0; at = visited[at].from)
                    result.path.push_back(visited[at].print);
                std::reverse(result.path.begin(), result.path.end());
            });
            result.states = visited.size();
            if (result.outcome != Outcome::kFine)
                return result;
            from++;
        }
    }
    return result;
}

// Goes the way again with the names that normalize() has changed.
template <typename Model>
void tell(const Model& model, const Result<typename Model::Outcome>& result) {
    typename Model::State state;
    int now = 0;
    for (size_t i = 0; i < result.path.size(); i++) {
        bool last = i + 1 == result.path.size(), found = false;
        typename Model::State next;
        model.each_step(state, [&](auto& after, auto outcome, const char* words, int who) {
            auto normal = after;
            model.normalize(&normal);
            if (found || (last ? outcome != result.outcome : fingerprint(normal) != result.path[i]))
                return;
            found = true;
            next = after;
            now += std::string_view(words) == "time passes";
            std::printf("# %2zu  ", i + 1);
            model.tell(state, after, words, who, now);
        });
        if (!found)
            std::printf("# %2zu  cannot be told: normalize() has made different states equal\n",
                        i + 1);
        state = next;
    }
    std::printf("#     so: %s\n", Model::words(result.outcome));
}

template <typename Model>
struct Check {
    Planted<Model> planted;
    Result<typename Model::Outcome> result;
    std::promise<void> done;
};

// Two at a time: the larger ones take half a gigabyte.
template <typename Model>
void run(std::vector<Check<Model>>* checks) {
    std::atomic<size_t> started = 0;
    auto work = [&] {
        for (size_t i = started++; i < checks->size(); i = started++) {
            Check<Model>& check = (*checks)[i];
            const Planted<Model>& planted = check.planted;
            check.result = find_failure(Model(planted.scope, planted.fault), planted.expected);
            check.done.set_value();
        }
    };
    std::jthread one(work), other(work);
}

// The program: no option, --deep, or --trace RULE.
template <typename Model, typename Scopes, typename DeepScopes, typename Faults>
int main(int argc, char** argv, const Scopes& scopes, const DeepScopes& deep_scopes,
         const Faults& faults) {
    using Fault = typename Model::Fault;
    using Outcome = typename Model::Outcome;
    std::string_view option = argc > 1 ? argv[1] : "", traced = argc > 2 ? argv[2] : "";
    if (!(argc == 1 || (argc == 2 && option == "--deep") || (argc == 3 && option == "--trace"))) {
        std::fprintf(stderr, "usage: %s [--deep | --trace RULE]\n", argv[0]);
        return 2;
    }
    std::vector<Check<Model>> checks;
    auto add = [&](const Planted<Model>& planted) { checks.push_back({planted, {}, {}}); };
    for (const auto* scope : scopes)
        if (traced.empty())
            add({"", "", Fault::kNone, Outcome::kFine, *scope});
    for (const auto* scope : deep_scopes)
        if (option == "--deep")
            add({"", "", Fault::kNone, Outcome::kFine, *scope});
    for (const Planted<Model>& planted : faults)
        if (traced.empty() || traced == planted.rule)
            add(planted);

    int number = 0, failed = 0;
    std::printf("1..%zu\n", checks.size());
    std::jthread runner(run<Model>, &checks);
    for (Check<Model>& check : checks) {
        check.done.get_future().wait();
        const Planted<Model>& planted = check.planted;
        const auto& result = check.result;
        bool good = result.outcome == planted.expected;
        failed += !good;
        std::printf("%sok %d - ", good ? "" : "not ", ++number);
        if (planted.fault == Fault::kNone)
            std::printf("the rules hold, %s: %zu states\n", planted.scope.name, result.states);
        else if (good && planted.expected == Outcome::kFine)
            std::printf("without %s: %s: not needed: %zu states\n", planted.rule, planted.words,
                        result.states);
        else
            std::printf("without %s: %s: %s after %zu steps\n", planted.rule, planted.words,
                        Model::words(result.outcome), result.path.size());
        if (!traced.empty() || (planted.fault == Fault::kNone && !good))
            tell(Model(planted.scope, planted.fault), result);
        std::fflush(stdout);
    }
    return failed > 0;
}

} // namespace search
