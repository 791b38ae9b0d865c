#include "15_serving/workload.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "15_serving/shows/toy_runner.hpp"

namespace t2t {

/// An integer from `from` to `to`.
static std::size_t between(Random& random, std::size_t from, std::size_t to) {
  return from + std::min(to - from, std::size_t(random.next_uniform() * float(to - from + 1)));
}

Workload random_workload(Random& random, std::size_t V) {
  const std::size_t page_size = std::size_t(1) << between(random, 0, 3);  // 1, 2, 4 or 8 tokens
  const std::size_t sequences = between(random, 1, 5);
  Workload workload{
      {between(random, 4, 24), page_size, sequences, sequences + between(random, 0, 20)}, {}};
  const std::size_t most = workload.options.pages * page_size;
  const auto token = [&] { return int(between(random, 0, V - 1)); };
  std::vector<int> common(between(random, 0, most / 2));
  for (int& id : common) id = token();

  const std::size_t count = between(random, 1, 12);
  for (std::size_t i = 0; i < count; ++i) {
    Arrival arrival{between(random, 0, 30), {}, {}};
    std::vector<int>& prompt = arrival.request.prompt;
    if (random.next_uniform() < 0.6f) prompt = common;
    for (std::size_t more = between(random, 0, most / 3); more > 0; --more)
      prompt.push_back(token());
    if (prompt.empty()) prompt.push_back(token());
    prompt.resize(std::min(prompt.size(), most - 1));
    arrival.request.max_new_tokens = between(random, 1, 20);
    arrival.request.sampling.temperature = random.next_uniform() < 0.5f ? 0 : 3;
    arrival.request.seed = i;
    if (random.next_uniform() < 0.2f) arrival.request.stop_tokens = {token()};
    if (random.next_uniform() < 0.5f) {
      arrival.request.drafter = toy_drafter(V, between(random, 0, 2) * 40);
      arrival.request.max_drafts = between(random, 1, 6);
    }
    if (random.next_uniform() < 0.15f) arrival.cancelled = arrival.step + between(random, 0, 20);
    workload.arrivals.push_back(arrival);
  }
  workload.options.max_prefill_tokens = between(random, 0, 5);
  workload.options.swap = between(random, 0, 1) * between(random, 0, 12);
  return workload;
}

/// Random workloads end after some dozens of steps.
static constexpr std::size_t most_steps = 5000;

static void hear(const Event& event, WorkloadText& sequence) {
  if (event.token) sequence.said.push_back(*event.token);
  if (event.ending) sequence.ending = event.ending;
}

WorkloadText alone(Request request, const EngineOptions& options, const MakeRunner& make) {
  Engine engine(make(options));
  request.drafter = {};
  engine.submit(std::move(request));
  WorkloadText sequence;
  for (std::size_t step = 0; !engine.idle() && step < most_steps; ++step)
    for (const Event& event : engine.step()) hear(event, sequence);
  return sequence;
}

/// What is wrong with the counts of pages, or an empty sequence.
static std::string wrong_pages(const Engine& engine, const EngineOptions& options) {
  const PagePool& pool = engine.pool();
  std::vector<std::size_t> references(pool.pages(), 0);
  for (const Sequence& sequence : engine.running()) {
    if (std::set(sequence.table.begin(), sequence.table.end()).size() != sequence.table.size())
      return fmt::format("text {}: a page twice in {}", sequence.id, sequence.table);
    if (const std::size_t needed = options.pages_for(sequence.computed);
        sequence.table.size() != needed)
      return fmt::format("sequence {}: wanted {} pages for {} tokens, got {}", sequence.id, needed,
                         sequence.computed, sequence.table.size());
    if (!sequence.swapped.empty()) return fmt::format("text {}: runs and has copies", sequence.id);
    for (const std::size_t number : sequence.table) ++references[number];
  }
  for (const Sequence& sequence : engine.waiting())
    if (!sequence.table.empty() || sequence.swapped.size() != options.pages_for(sequence.computed))
      return fmt::format("text {}: waits with {} pages, {} copies and {} computed tokens",
                         sequence.id, sequence.table.size(), sequence.swapped.size(),
                         sequence.computed);
  for (const std::size_t number : engine.tree().pages()) ++references[number];
  std::size_t free = 0;
  for (std::size_t number = 0; number < pool.pages(); ++number) {
    if (pool.references(number) != references[number])
      return fmt::format("page {}: wanted {} references, got {}", number, references[number],
                         pool.references(number));
    free += references[number] == 0;
  }
  if (free != pool.free()) return fmt::format("free pages: wanted {}, got {}", free, pool.free());
  return {};
}

/// What is wrong with the sequences that run and with the plan, or an empty sequence.
static std::string wrong_plan(const Engine& engine, const EngineOptions& options) {
  std::set<std::size_t> places;
  for (const Sequence& sequence : engine.running()) {
    if (sequence.index >= options.sequences || !places.insert(sequence.index).second)
      return fmt::format("sequence {}: wanted a place of its own below {}, got {}", sequence.id,
                         options.sequences, sequence.index);
  }
  std::size_t copies = 0, tokens = 0;
  for (const Sequence& sequence : engine.waiting()) copies += sequence.swapped.size();
  if (copies > options.swap)
    return fmt::format("copies of pages: wanted at most {}, got {}", options.swap, copies);
  for (const SequenceStep& part : engine.sequence_steps()) tokens += part.ids.size();
  if (tokens > options.budget)
    return fmt::format("tokens of the step: wanted at most {}, got {}", options.budget, tokens);
  return {};
}

/// Watches that the oldest sequence goes on: it may not be the same, with the same tokens read,
/// after more than two steps.
class OldestWatched {
 public:
  std::string wrong(const Engine& engine) {
    const Sequence* oldest = nullptr;
    for (const auto* sequences : {&engine.running(), &engine.waiting()})
      for (const Sequence& sequence : *sequences)
        if (!oldest || sequence.arrival < oldest->arrival) oldest = &sequence;
    const std::pair now = oldest ? std::pair(oldest->id, oldest->computed) : std::pair(none, none);
    steps_ = now == last_ && oldest ? steps_ + 1 : 0;
    last_ = now;
    if (steps_ > 1) return fmt::format("text {}: the oldest, and does not go on", now.first);
    return {};
  }

 private:
  static constexpr std::size_t none = std::size_t(-1);
  std::pair<std::size_t, std::size_t> last_{none, none};
  std::size_t steps_ = 0;
};

/// Whether a sequence that was heard out, or cut off, may have said this.
static std::string wrong_answer(const WorkloadText& got, const WorkloadText& want,
                                bool is_cancelled) {
  const bool begins_alike = got.said.size() <= want.said.size() &&
                            std::equal(got.said.begin(), got.said.end(), want.said.begin());
  if (!begins_alike || (!is_cancelled && got.said.size() != want.said.size()))
    return fmt::format("says {} alone, and {} here", want.said, got.said);
  if (!is_cancelled && got.ending != want.ending)
    return fmt::format("ends by {} alone, and by {} here",
                       want.ending ? ending_text(*want.ending) : "nothing",
                       got.ending ? ending_text(*got.ending) : "nothing");
  return {};
}

/// A run: which sequence of the workload has which id, and what each has said.
struct WorkloadRun {
  const Workload& workload;
  Engine engine;
  std::vector<std::optional<std::size_t>> ids = {};
  std::map<std::size_t, WorkloadText> heard = {};

  void begin_step(std::size_t step) {
    for (std::size_t i = 0; i < workload.arrivals.size(); ++i) {
      const Arrival& arrival = workload.arrivals[i];
      if (arrival.step == step) ids[i] = engine.submit(arrival.request);
      if (arrival.cancelled == step && ids[i]) engine.cancel(*ids[i]);
    }
  }
};

std::string run_workload(const Workload& workload, const MakeRunner& make, const AfterStep& after) {
  WorkloadRun run{workload, Engine(make(workload.options))};
  run.ids.resize(workload.arrivals.size());
  std::size_t last = 0;
  for (const Arrival& arrival : workload.arrivals) last = std::max(last, arrival.step);
  OldestWatched oldest;
  for (std::size_t step = 0; step <= last || !run.engine.idle(); ++step) {
    if (step == most_steps) return fmt::format("step {}: the workload does not end", step);
    run.begin_step(step);
    const std::vector<Event> events = run.engine.step();
    for (const Event& event : events) hear(event, run.heard[event.id]);
    if (after) after(step, run.engine, events);
    for (const std::string& wrong :
         {wrong_pages(run.engine, workload.options), wrong_plan(run.engine, workload.options),
          oldest.wrong(run.engine)})
      if (!wrong.empty()) return fmt::format("step {}: {}", step, wrong);
  }
  for (std::size_t i = 0; i < workload.arrivals.size(); ++i) {
    if (!run.ids[i]) continue;
    const WorkloadText want = alone(workload.arrivals[i].request, workload.options, make);
    const std::string wrong =
        wrong_answer(run.heard[*run.ids[i]], want, workload.arrivals[i].cancelled.has_value());
    if (!wrong.empty()) return fmt::format("text {}: {}", *run.ids[i], wrong);
  }
  return {};
}

Workload shrunk(Workload workload, const std::function<bool(const Workload&)>& fails) {
  const auto smaller = [&](auto change) {
    Workload tried = workload;
    change(tried);
    if (!fails(tried)) return false;
    workload = std::move(tried);
    return true;
  };
  for (bool found = true; found;) {
    found = false;
    for (std::size_t i = workload.arrivals.size(); i-- > 0;)
      found |= workload.arrivals.size() > 1 &&
               smaller([&](Workload& t) { t.arrivals.erase(t.arrivals.begin() + long(i)); });
    for (std::size_t i = 0; i < workload.arrivals.size(); ++i) {
      const Request& request = workload.arrivals[i].request;
      if (request.max_new_tokens > 1)
        found |= smaller([&](Workload& t) { t.arrivals[i].request.max_new_tokens /= 2; });
      if (request.drafter)
        found |= smaller([&](Workload& t) { t.arrivals[i].request.drafter = {}; });
      if (request.prompt.size() > 1)
        found |= smaller([&](Workload& t) { t.arrivals[i].request.prompt.pop_back(); });
      if (workload.arrivals[i].step > 0)
        found |= smaller([&](Workload& t) { --t.arrivals[i].step; });
    }
  }
  return workload;
}

std::string picture_of(const Engine& engine) {
  constexpr std::string_view names = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string picture(engine.pool().pages(), '.');
  for (const std::size_t page : engine.tree().pages()) picture[page] = '-';
  for (const Sequence& sequence : engine.running())
    for (const std::size_t page : sequence.table) {
      char& mark = picture[page];
      mark = mark == '.' || mark == '-' ? names[sequence.id % names.size()] : '+';
    }
  return picture;
}

}  // namespace t2t
