// The limits of a launch. Those of shared memory differ from GPU to GPU.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "cuda_on_cpu/machine.hpp"

namespace t2t::stand_in {
namespace {

std::string to_string(const dim3& size) {
  return stand_in::to_string(uint3{size.x, size.y, size.z});
}

/// A compute capability, and the shared memory that a block and a multiprocessor can have there
/// (CUDA Programming Guide, "Technical specifications per compute capability").
struct Card {
  int capability;  // times 10
  std::size_t shared_bytes, of_multiprocessor;

  std::string name() const { return "sm_" + std::to_string(capability); }
};
constexpr Card card(int capability, std::size_t kib) {
  return {capability, (kib - 1) * 1024, kib * 1024};
}
constexpr std::array cards = {card(80, 164),    // A100
                              card(86, 100),    // RTX 30, A10, A40
                              card(89, 100),    // RTX 40, L4, L40
                              card(90, 228),    // H100, H200
                              card(100, 228),   // B200
                              card(120, 100)};  // RTX 50

/// The one that T2T_CARD names, or sm_90.
Card wanted_card(const LaunchSite& site) {
  const char* wanted = std::getenv("T2T_CARD");
  const std::string_view name = wanted == nullptr ? "sm_90" : wanted;
  std::string names;
  for (const Card& card : cards) {
    if (card.name() == name) return card;
    names += (names.empty() ? "" : ", ") + card.name();
  }
  refuse(site, "T2T_CARD: wanted " + names + ", got '" + std::string(name) + "'");
}

}  // namespace

int blocks_of_multiprocessor(const LaunchSite& site, int threads, std::size_t dynamic_bytes) {
  constexpr std::size_t of_cuda = 1024;  // what CUDA takes for itself, for each block
  const Card card = wanted_card(site);
  if (dynamic_bytes > card.shared_bytes) return 0;
  return std::min(int(card.of_multiprocessor / (dynamic_bytes + of_cuda)), 2048 / threads);
}

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

void expect_shared_fits(const LaunchSite& site, const Machine& e) {
  std::size_t bytes = 0;
  for (const auto& variable : e.static_shared) bytes += variable.size();
  if (bytes > 48 * 1024) {
    refuse(site, std::to_string(bytes) + " bytes of static shared memory: at most 49152");
  }
  const Card card = wanted_card(site);
  if (bytes + e.dynamic_shared.size() > card.shared_bytes) {
    refuse(site, std::to_string(bytes) + " bytes of static and " +
                     std::to_string(e.dynamic_shared.size()) +
                     " of dynamic shared memory: a block on " + card.name() + " has at most " +
                     std::to_string(card.shared_bytes));
  }
}

int wanted_capability(const LaunchSite& site) { return wanted_card(site).capability; }

void expect_hopper(const char* what, const Place& place) {
  const int capability = machine().capability;
  if (capability < 90) {
    fault("sm_" + std::to_string(capability) + " has no " + what + ": sm_90 and later have them",
          place);
  }
}

void expect_warpgroups(const char* what, const Place& place) {
  const int capability = machine().capability;
  if (capability != 90) {
    fault("sm_" + std::to_string(capability) + " has no " + what + ": only sm_90 has it", place);
  }
}

}  // namespace t2t::stand_in
