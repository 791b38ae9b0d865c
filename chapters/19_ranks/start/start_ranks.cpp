#include "19_ranks/start/start_ranks.hpp"

#include <fmt/format.h>
#include <omp.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "19_ranks/start/wait_board.hpp"
#include "program/print.hpp"
#include "program/stop_asked.hpp"

namespace t2t {

const char* launched_rank() {
  // Set by Open MPI, by MPICH, and by launchers of clusters.
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    if (const char* rank = std::getenv(name); rank != nullptr) return rank;
  return nullptr;
}

static bool is_program(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

static std::string in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (is_program(folder + "/" + program)) return folder + "/" + program;
  return "";
}

std::string find_mpirun() {
  const char* chosen = std::getenv("T2T_MPIRUN");
  std::string found = chosen != nullptr ? chosen : T2T_BUILT_WITH_MPIRUN;
  if (chosen == nullptr && !is_program(found)) found = in_path("mpirun");
  if (!is_program(found))
    throw std::runtime_error(
        fmt::format("mpirun, which starts the ranks, is missing{} (Debian: openmpi-bin "
                    "libopenmpi-dev; ./learn setup installs them)",
                    found.empty() ? "" : ": " + found));
  return found;
}

/// What the ranks find in their environment. What the reader has set stays.
static void set_environment(std::size_t ranks) {
  const std::pair<const char*, std::string> variables[] = {
    // Open MPI refuses root, which is the usual user of a container.
    {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
    // More ranks than cores, in Open MPI 4, 5 and 6; a rank that waits then gives up its core.
    {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
    {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},
    {"PRTE_MCA_mapby", ":oversubscribe"},
    {"OMPI_MCA_mpi_yield_when_idle", "1"},
    // Messages go through shared memory or TCP: a container forbids to read another process's
    // memory, and other transports take seconds to find that they have no network.
    {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
    {"OMPI_MCA_smsc", "^cma"},
    {"OMPI_MCA_pml", "ob1"},
    {"OMPI_MCA_osc", "^ucx"},
    // A container without /sys hides its cores and networks, which MPI's libraries would tell.
    {"HWLOC_HIDE_ERRORS", "2"},
    {"UCX_LOG_LEVEL", "fatal"},
    // A rank's output goes through mpirun, which may make a terminal of it.
    {"COLUMNS", std::to_string(terminal_width())},
#if defined(__SANITIZE_ADDRESS__)
    {"ASAN_OPTIONS", "detect_leaks=0"},  // MPI's own
#endif
  };
  for (const auto& [name, value] : variables) setenv(name, value.c_str(), 0);
  if (!use_colour()) setenv("NO_COLOR", "1", 1);
  const std::size_t threads = std::max<std::size_t>(1, std::size_t(omp_get_max_threads()) / ranks);
  setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
  setenv(ranks_variable, std::to_string(ranks).c_str(), 1);
  setenv(wait_board_variable, make_wait_board(ranks).c_str(), 1);
}

void start_ranks(std::size_t ranks, const std::vector<std::string>& arguments) {
  // Ranks that are bound to cores may have to run all of their threads on one.
  std::vector<std::string> words = {find_mpirun(), "--bind-to", "none", "-n",
                                    std::to_string(ranks)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  set_environment(ranks);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  throw std::runtime_error(fmt::format("{}: {}", words[0], std::strerror(errno)));
}

/// In the new process: a process group of its own, which the terminal's Ctrl-C does not reach.
[[noreturn]] static void become_launcher(std::size_t ranks,
                                         const std::vector<std::string>& arguments) {
  try {
    setpgid(0, 0);
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
    if (std::freopen("/dev/null", "r", stdin) == nullptr)
      throw std::runtime_error("/dev/null can't be opened");
    start_ranks(ranks, arguments);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    std::_Exit(1);
  }
}

int run_ranks(std::size_t ranks, const std::vector<std::string>& arguments) {
  find_mpirun();  // which throws here if there is none
  const StopAsked to_stop{SIGINT, SIGTERM};
  const pid_t launcher = fork();
  if (launcher < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
  if (launcher == 0) become_launcher(ranks, arguments);
  constexpr timespec nap{0, 20'000'000};  // nanoseconds
  int status = 0;
  for (bool told = false; waitpid(launcher, &status, WNOHANG) == 0; nanosleep(&nap, nullptr))
    if (StopAsked::asked() && !std::exchange(told, true)) kill(launcher, SIGUSR1);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace t2t
