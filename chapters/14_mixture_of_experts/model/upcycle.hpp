// Upcycling: a dense model becomes a mixture, whose experts start as copies of the dense network.
//
//   blk.3.ffn_up.weight  [F, C]   →   blk.3.ffn_up_exps.weight  [E, F, C], E times the same
//                                     blk.3.ffn_gate_inp.weight [E, C], a random router
//
// While all experts are equal and a token's weights add up to 1, the mixture computes what the
// dense model computes, whatever the router chooses. Training can then make the experts differ.
// Komatsuzaki et al. 2022, "Sparse Upcycling".
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "10_pretrained/file/gguf.hpp"

namespace t2t {

struct Upcycling {
  std::size_t experts = 4, chosen = 2;
  std::uint64_t seed = 1;  // of the routers
};

/// Writes the mixture and returns the size of its file. Matrices keep their types; memory holds no
/// second copy, and the file appears whole or not at all. Throws std::runtime_error, as chapter
/// 10's read_config and expect_tensors do, unless the file is a model of the llama architecture
/// without experts; std::invalid_argument unless `chosen` is from 1 to `experts`.
std::uint64_t upcycle(
    const GgufFile& in, const Upcycling& upcycling, const std::filesystem::path& out,
    const std::function<void(std::size_t done, std::size_t all)>& after_tensor = {});

}  // namespace t2t
