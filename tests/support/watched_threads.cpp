// OpenMP's loops on plain threads, for programs in which races between threads are looked for.
// ThreadSanitizer does not see how the threads of OpenMP's own library wait for each other, and
// would report races where there are none. These functions take that library's place; what is not
// here (the tutor's races.py knows it) can't be watched.
#include <pthread.h>

#include <atomic>
#include <thread>
#include <vector>

namespace {

constexpr int team_size = 3;

struct Team {
  explicit Team(unsigned size) : singles(size, 0) { pthread_barrier_init(&barrier, nullptr, size); }
  ~Team() { pthread_barrier_destroy(&barrier); }
  pthread_barrier_t barrier;
  std::vector<unsigned> singles;     // how many single regions each thread has come to
  std::atomic<unsigned> single = 0;  // and how many are taken
};

thread_local Team* team = nullptr;
thread_local int number = 0;

pthread_mutex_t critical = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t atomic_update = PTHREAD_MUTEX_INITIALIZER;

void work_in(Team& of, int as, void (*body)(void*), void* data) {
  Team* const team_before = team;
  const int number_before = number;
  team = &of, number = as;
  body(data);
  team = team_before, number = number_before;
}

}  // namespace

extern "C" {

int omp_get_max_threads() { return team_size; }
int omp_get_num_procs() { return team_size; }
void omp_set_num_threads(int) {}
int omp_get_thread_num() { return number; }
int omp_get_num_threads() { return team == nullptr ? 1 : static_cast<int>(team->singles.size()); }
int omp_in_parallel() { return omp_get_num_threads() > 1; }

/// A region inside another one has a single thread, as OpenMP has it unless it is told otherwise.
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned) {
  const unsigned size = team != nullptr ? 1 : threads == 0 ? team_size : threads;
  Team own(size);
  std::vector<std::jthread> others;
  for (unsigned i = 1; i < size; ++i)
    others.emplace_back([&, i] { work_in(own, static_cast<int>(i), body, data); });
  work_in(own, 0, body, data);
}

void GOMP_barrier() {
  if (team != nullptr) pthread_barrier_wait(&team->barrier);
}

bool GOMP_single_start() {
  if (team == nullptr) return true;
  unsigned mine = team->singles[static_cast<std::size_t>(number)]++;
  return team->single.compare_exchange_strong(mine, mine + 1);
}

void GOMP_critical_start() { pthread_mutex_lock(&critical); }
void GOMP_critical_end() { pthread_mutex_unlock(&critical); }
void GOMP_critical_name_start(void**) { GOMP_critical_start(); }
void GOMP_critical_name_end(void**) { GOMP_critical_end(); }
void GOMP_atomic_start() { pthread_mutex_lock(&atomic_update); }
void GOMP_atomic_end() { pthread_mutex_unlock(&atomic_update); }
}
