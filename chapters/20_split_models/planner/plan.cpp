#include "20_split_models/planner/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>
#include <tuple>

#include "shapes.hpp"

namespace t2t {

using Found = std::function<void(const Layout&)>;

static std::vector<std::size_t> divisors(std::size_t n, std::size_t most) {
  std::vector<std::size_t> found;
  for (std::size_t i = 1; i <= std::min(n, most); ++i)
    if (n % i == 0) found.push_back(i);
  return found;
}

/// What a rank computes at a time and stores, for these groups of ranks.
static void each_storage(Layout layout, const ModelShape& model, const Job& job,
                         const Found& found) {
  const std::size_t sequences = (job.B + layout.d - 1) / layout.d, blocks = model.L / layout.p;
  layout.chunks = layout.p == 1 ? 1 : std::clamp<std::size_t>(blocks, 1, 4);
  for (const std::size_t e : divisors(layout.d, model.experts)) {
    if (model.experts % e != 0) continue;
    layout.e = e;
    for (std::size_t micro_batch = 1; micro_batch <= std::min<std::size_t>(sequences, 8);
         micro_batch *= 2)
      for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::all})
        for (const bool recompute : {false, true}) {
          layout.micro_batch = micro_batch;
          layout.sharding = sharding, layout.recompute = recompute;
          found(layout);
        }
  }
}

static void each_layout(const ModelShape& model, const Cluster& cluster, const Job& job,
                        const Found& found) {
  const std::size_t longest = job.T > 32'768 ? job.T / 8192 : 1;
  for (const std::size_t t : divisors(cluster.devices, cluster.node)) {
    if (model.H % t != 0 || model.F % t != 0) continue;
    for (const std::size_t c : divisors(cluster.devices / t, longest))
      for (const std::size_t p : divisors(cluster.devices / t / c, model.L)) {
        const std::size_t d = cluster.devices / t / c / p;
        if (d <= job.B) each_storage({.t = t, .c = c, .p = p, .d = d}, model, job, found);
      }
  }
}

static bool is_better(const Plan& a, const Plan& b) {
  const auto key = [](const Plan& plan) {
    return std::tuple(total(plan.time), plan.layout.t * plan.layout.p, total(plan.memory));
  };
  return key(a) < key(b);
}

std::vector<Plan> plans(const ModelShape& model, const Cluster& cluster, const Job& job,
                        std::size_t most) {
  expect(cluster.devices >= 1, "devices", "at least 1", cluster.devices);
  expect(job.T >= 1, "T", "at least 1", job.T);
  expect(job.B >= 1, "B", "at least 1", job.B);
  std::vector<Plan> fitting;
  double least = std::numeric_limits<double>::infinity();
  each_layout(model, cluster, job, [&](const Layout& layout) {
    const RankMemory memory = rank_memory(model, job, layout);
    least = std::min(least, total(memory));
    if (total(memory) <= cluster.memory)
      fitting.push_back({layout, step_time(model, cluster, job, layout), memory});
  });
  if (least == std::numeric_limits<double>::infinity())
    throw std::runtime_error(
        fmt::format("{} devices are too many for {} sequences of {}: no layout uses them all",
                    cluster.devices, job.B, model.name));
  if (fitting.empty())
    throw std::runtime_error(fmt::format(
        "{} does not fit into {} devices of {:.0f} GB: the layout that needs least, {:.0f} GB a "
        "device",
        model.name, cluster.devices, cluster.memory / 1e9, least / 1e9));
  std::ranges::sort(fitting, is_better);
  if (fitting.size() > most) fitting.resize(most);
  return fitting;
}

}  // namespace t2t
