// Which rows of a call belong to which sequence, and where each continues.
//
// The rows x, [T, C], of a call can belong to several sequences. The rows of one sequence are
// consecutive and form a run (other code marks the boundaries with cu_seqlens). Whoever calls the
// blocks knows how long its sequences are (chapter 09's ModelState does) and says so with each
// call. Whatever attention has cached from a run's position on is overwritten. A call that failed
// can therefore simply be repeated, and a sequence is truncated by starting its next run at an
// earlier position.
#pragma once

#include <cstddef>
#include <span>

namespace t2t {

// [runs]
/// The next `rows` rows of a call belong to this sequence, from this position on.
struct Run {
  std::size_t sequence, position, rows;
};

/// The runs of a call, in the order of its rows; a single Run is a list of one.
struct Runs : std::span<const Run> {
  using std::span<const Run>::span;
  Runs(const Run& one) : span(&one, 1) {}
};

/// Calls f(run, first), first being the run's first row, for each run.
template <class F>
void for_each_run(Runs runs, F f) {
  std::size_t first = 0;
  for (const Run& run : runs) {
    f(run, first);
    first += run.rows;
  }
}
// [/runs]

}  // namespace t2t
