// Devices and what connects them.
#pragma once

#include <cstddef>
#include <string_view>

namespace t2t {

/// Devices stand in nodes, such as eight GPUs in one machine. Bandwidths are those of one device in
/// each direction.
struct Cluster {
  std::string_view device;
  double peak;            // FLOP/s of a device in 16 bits
  double memory;          // bytes of a device
  std::size_t devices;    // in all
  double node_bandwidth;  // bytes per second inside a node
  double network;         // bytes per second between nodes
  std::size_t node = 8;   // devices of a node
};

/// A cluster of "a100", "h100" or "h800", each with 80 GB. Throws std::invalid_argument for another
/// name. H100 and H800: https://jax-ml.github.io/scaling-book/gpus/ and arXiv 2412.19437.
Cluster cluster_of(std::string_view device, std::size_t devices);

}  // namespace t2t
