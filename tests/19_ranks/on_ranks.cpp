#include "19_ranks/on_ranks.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <string_view>

#include "19_ranks/start/start_ranks.hpp"
#include "support/first_difference.hpp"
#include "support/hashed_numbers.hpp"

namespace t2t {

static std::vector<std::string> arguments;
static std::unique_ptr<Mpi> mpi;
static std::string lost;  // the first wait that was too long: so many would take minutes

/// Runs before main, which gives nobody its arguments.
[[gnu::constructor]] static void keep_arguments(int argc, char** argv) {
  arguments.assign(argv, argv + argc);
}

/// For ranks that report nothing: the arguments without the file that they would write.
static std::vector<std::string> silent() {
  std::vector<std::string> others;
  for (const std::string& word : arguments)
    if (!std::string_view(word).starts_with("--out=")) others.push_back(word);
  others.push_back("--out=/dev/null");
  return others;
}

/// A rank's bytes, to all ranks.
static void share(const Communicator& world, std::size_t from, void* bytes, std::size_t count) {
  MPI_Bcast(bytes, int(count), MPI_BYTE, int(from), world.handle);
}

/// Begins and ends MPI with the run of the checks; what only lists them needs none.
struct Session : doctest::IReporter {
  explicit Session(const doctest::ContextOptions&) {}
  void test_run_start() override {
    setenv("MPIEXEC_TIMEOUT", "300", 0);  // seconds, after which mpirun ends all
    if (!is_rank()) start_ranks(most_ranks, arguments, silent());
    mpi = std::make_unique<Mpi>();
  }
  void test_run_end(const doctest::TestRunStats& stats) override {
    const bool reports = mpi->world().rank == 0, failed = stats.numTestCasesFailed > 0;
    bool reported = failed;
    share(mpi->world(), 0, &reported, sizeof reported);
    mpi.reset();
    // mpirun ends all ranks as soon as one fails. Thus the one that reports fails, unless it does
    // not know of any failure.
    if (!reports) std::_Exit(failed && !reported ? 1 : 0);
  }
  void report_query(const doctest::QueryData&) override {}
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
DOCTEST_REGISTER_LISTENER("session", 0, Session);

/// What this rank's call returns, or its error.
static OnRanks outcome_of(const Communicator& ranks,
                          const std::function<std::vector<float>(const Communicator&)>& call) {
  if (ranks.size == 0) return {};
  try {
    return {"", {call(ranks)}};
  } catch (const std::exception& error) {
    return {error.what(), {{}}};
  }
}

OnRanks on_ranks(std::size_t p,
                 const std::function<std::vector<float>(const Communicator&)>& call) {
  if (!lost.empty()) return {lost, std::vector<std::vector<float>>(p)};
  Communicator ranks = first_ranks(mpi->world(), p);
  ranks.limit = 5;
  OnRanks own = outcome_of(ranks, call), all;
  for (std::size_t r = 0; r < p; ++r) {
    const bool mine = mpi->world().rank == r;
    std::string error = mine ? own.error : "";
    std::vector<float> result = mine ? own.results[0] : std::vector<float>{};
    std::size_t lengths[] = {error.size(), result.size()};
    share(mpi->world(), r, lengths, sizeof lengths);
    error.resize(lengths[0]), result.resize(lengths[1]);
    share(mpi->world(), r, error.data(), error.size());
    share(mpi->world(), r, result.data(), result.size() * sizeof(float));
    if (all.error.empty()) all.error = error;
    all.results.push_back(result);
  }
  // What an error leaves behind stays in a communicator that nobody uses again.
  if (all.error.empty()) free_communicator(ranks);
  if (all.error.find("have not gone through") != all.error.npos) lost = all.error;
  return all;
}

const Communicator& all_ranks() { return mpi->world(); }

std::string first_wrong(const OnRanks& got, const std::vector<float>& want) {
  if (!got.error.empty()) return got.error;
  for (std::size_t r = 0; r < got.results.size(); ++r)
    if (got.results[r] != want)
      return fmt::format("rank {}: {}", r, first_difference(got.results[r], want));
  return "";
}

std::vector<float> whole_numbers(std::size_t rank, std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = float((rank + 1) * 1000 + i % 997);
  return x;
}

std::vector<float> fractions(std::size_t rank, std::size_t n) {
  const Tensor<1> x = numbers(std::uint32_t(rank) + 1, 2, 0.3f, n);
  return {x.begin(), x.end()};
}

}  // namespace t2t
