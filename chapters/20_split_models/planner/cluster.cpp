#include "20_split_models/planner/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace t2t {

static constexpr double tera = 1e12, giga = 1e9;

static constexpr std::array known{Cluster{"a100", 312 * tera, 80 * giga, 1, 300 * giga, 25 * giga},
                                  Cluster{"h100", 989 * tera, 80 * giga, 1, 450 * giga, 50 * giga},
                                  Cluster{"h800", 989 * tera, 80 * giga, 1, 160 * giga, 50 * giga}};

Cluster cluster_of(std::string_view device, std::size_t devices) {
  const auto found = std::ranges::find(known, device, &Cluster::device);
  if (found == known.end())
    throw std::invalid_argument(
        fmt::format("--accelerator: wanted a100, h100 or h800, got {}", device));
  Cluster cluster = *found;
  cluster.devices = devices;
  return cluster;
}

}  // namespace t2t
