// The limits of a launch, those of compute capability 9.0.
#include <stdexcept>

#include "cuda_on_cpu/engine.hpp"

namespace t2t::stand_in {
namespace {

std::string to_string(const dim3& size) {
  return stand_in::to_string(uint3{size.x, size.y, size.z});
}

}  // namespace

void refuse(const LaunchSite& site, const std::string& why) {
  throw std::runtime_error(std::string(site.file) + ":" + std::to_string(site.line) + ": " +
                           site.kernel + ": " + why);
}

void expect_launchable(const LaunchSite& site, dim3 grid, dim3 block) {
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  if (threads < 1 || threads > 1024 || block.x > 1024 || block.y > 1024 || block.z > 64) {
    refuse(site, "no GPU takes a block of " + to_string(block) + " threads: 1 to 1024, 64 in z");
  }
  if (grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.x > 0x7fffffff || grid.y > 65535 ||
      grid.z > 65535) {
    refuse(site, "no GPU takes a grid of " + to_string(grid) +
                     " blocks: 1 to 2147483647 in x, to 65535 in y and z");
  }
}

void expect_shared_fits(const LaunchSite& site, const Engine& e) {
  std::size_t bytes = 0;
  for (const auto& variable : e.static_shared) bytes += variable.size();
  if (bytes > 48 * 1024) {
    refuse(site, std::to_string(bytes) + " bytes of static shared memory: at most 49152");
  }
  if (bytes + e.dynamic_shared.size() > 227 * 1024) {
    refuse(site, std::to_string(bytes) + " bytes of static and " +
                     std::to_string(e.dynamic_shared.size()) +
                     " of dynamic shared memory: a block has at most 232448");
  }
}

}  // namespace t2t::stand_in
