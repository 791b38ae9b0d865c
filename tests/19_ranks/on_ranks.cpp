#include "19_ranks/on_ranks.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <numeric>

#include "19_ranks/start/start_ranks.hpp"
#include "support/first_difference.hpp"
#include "support/hashed_numbers.hpp"

namespace t2t {

static int argument_count = 0;
static char** first_argument = nullptr;
static std::unique_ptr<Mpi> mpi;
static std::string lost;  // the first wait that was too long: so many would take minutes

/// Runs before main, which passes its arguments to nobody; before most variables are constructed,
/// too, which is why it sets plain ones. Ranks other than 0 report nothing. (mpirun could give them
/// arguments of their own, but Open MPI 5.0's crashes on that.)
[[gnu::constructor]] static void keep_arguments(int argc, char** argv) {
  argument_count = argc, first_argument = argv;
  const char* rank = launched_rank();
  if (rank == nullptr || std::string_view(rank) == "0") return;
  static char nowhere[] = "--out=/dev/null";
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]).starts_with("--out=")) argv[i] = nowhere;
  if (std::freopen("/dev/null", "w", stdout) == nullptr) std::abort();
}

/// Waits without keeping a core from another rank.
static void wait(MPI_Request& request) {
  for (int done = 0; done == 0; sched_yield()) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

/// Begins and ends MPI with the run of the checks; what only lists them needs none.
struct MpiReporter : doctest::IReporter {
  explicit MpiReporter(const doctest::ContextOptions&) {}
  void test_run_start() override {
    setenv("MPIEXEC_TIMEOUT", "300", 0);  // seconds, after which mpirun ends all
    const std::vector<std::string> arguments(first_argument, first_argument + argument_count);
    if (!is_rank()) start_ranks(most_ranks, arguments);
    mpi = std::make_unique<Mpi>();
  }
  void test_run_end(const doctest::TestRunStats& stats) override {
    const bool reports = mpi->world().rank == 0, failed = stats.numTestCasesFailed > 0;
    int reported = failed;
    MPI_Request request;
    MPI_Ibcast(&reported, 1, MPI_INT, 0, mpi->world().handle, &request);
    wait(request);
    mpi.reset();
    // mpirun ends all ranks as soon as one fails. Thus the one that reports fails, unless it does
    // not know of any failure.
    if (!reports) std::exit(failed && reported == 0 ? 1 : 0);
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
DOCTEST_REGISTER_LISTENER("session", 0, MpiReporter);

struct Outcome {
  std::string error;
  std::vector<float> result;
};
/// What this rank's call returns, or its error.
static Outcome outcome_of(const Communicator& ranks,
                          const std::function<std::vector<float>(const Communicator&)>& call) {
  if (ranks.size == 0) return {};
  try {
    return {"", call(ranks)};
  } catch (const std::exception& error) {
    return {error.what(), {}};
  }
}

/// The first p ranks, in a communicator that is kept for the next call.
static Communicator& first(std::size_t p) {
  static std::map<std::size_t, Communicator> known;
  if (!known.contains(p)) known[p] = first_ranks(mpi->world(), p);
  known[p].limit = 30;  // seconds, which a busy machine may need
  return known[p];
}

/// The bytes of each rank.
static std::vector<std::string> gathered(const std::string& own) {
  const Communicator& world = mpi->world();
  std::vector<int> lengths(world.size), begins(world.size);
  const int length = int(own.size());
  MPI_Request request;
  MPI_Iallgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, world.handle, &request);
  wait(request);
  std::partial_sum(lengths.begin(), lengths.end() - 1, begins.begin() + 1);
  std::string all(std::size_t(begins.back() + lengths.back()), 0);
  MPI_Iallgatherv(own.data(), length, MPI_BYTE, all.data(), lengths.data(), begins.data(), MPI_BYTE,
                  world.handle, &request);
  wait(request);
  std::vector<std::string> each;
  for (std::size_t r = 0; r < world.size; ++r)
    each.push_back(all.substr(std::size_t(begins[r]), std::size_t(lengths[r])));
  return each;
}

OnRanks on_ranks(std::size_t p,
                 const std::function<std::vector<float>(const Communicator&)>& call) {
  if (!lost.empty()) return {lost, std::vector<std::vector<float>>(p)};
  Communicator& ranks = first(p);
  const auto [error, result] = outcome_of(ranks, call);
  const std::vector<std::string> errors = gathered(error);
  const std::vector<std::string> results =
      gathered({reinterpret_cast<const char*>(result.data()), result.size() * sizeof(float)});
  OnRanks all;
  for (std::size_t r = 0; r < p; ++r) {
    if (all.error.empty()) all.error = errors[r];
    std::vector<float>& floats = all.results.emplace_back(results[r].size() / sizeof(float));
    std::ranges::copy(results[r], reinterpret_cast<char*>(floats.data()));
  }
  // What an error leaves behind stays in a communicator that nobody uses again.
  if (!all.error.empty()) ranks = first_ranks(mpi->world(), p);
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
