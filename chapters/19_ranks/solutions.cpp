// The solutions to the problems on paper of docs/19_ranks.md and docs/19_sharding.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include "19_ranks/counting/costs.hpp"
#include "19_ranks/sharded/sharded_costs.hpp"
#include "program/print.hpp"

namespace t2t {

static Solution bytes_of_a_step() {
  constexpr std::size_t parameters = 134'515'008, ranks = 4;
  const Sent one = ring_all_reduce_cost(parameters, ranks, 0);
  const double link = 1.25e9;  // bytes/s: 10 Gbit/s
  return {"gradients on a ring",
          fmt::format("2·(4 − 1)/4·{}·4 bytes = {} bytes from each rank, in {} messages. At 10 "
                      "Gbit/s, which are 1.25·10⁹ bytes/s, they take {:.2f} s in each step.",
                      with_commas(parameters), with_commas(one.bytes), one.messages,
                      double(one.bytes) / link)};
}

static Solution ring_or_tree() {
  const double alpha = 20e-6, beta = 1e9;
  const double bytes = (14 - 6) * alpha * beta / (6 - 1.75);
  return {
      "ring or tree",
      fmt::format("With p = 8 and m bytes, the ring takes 14·α + 1.75·m/β, and the tree 6·α + "
                  "6·m/β. They are equal at m = 8·α·β/4.25 = {} bytes, which are {} floats: the "
                  "tree is faster below, the ring above.",
                  with_commas(std::size_t(bytes)), with_commas(std::size_t(bytes / 4)))};
}

static Solution order_of_a_sum() {
  const float a = 1e8f, b = -1e8f, c = 1;
  return {"another order",
          fmt::format("In floats, (10⁸ + 1) is 10⁸, since neighbours there are 8 apart. Chunk 0 is "
                      "(x₁ + x₂) + x₀ = (−10⁸ + 1) + 10⁸ = {:g}, and chunk 2 is (x₀ + x₁) + x₂ = "
                      "(10⁸ − 10⁸) + 1 = {:g}. The tree adds x₀ + x₁ first everywhere.",
                      (b + c) + a, (a + b) + c)};
}

static Solution three_splits() {
  const Config config = preset("llama2-7b");
  constexpr std::size_t ranks = 4;
  const auto gigabytes = [&](TrainingSplit split) {
    const HeldBytes held = stored(split, SumOrder::ring, config, ranks, ranks, 0);
    return fmt::format("{:.1f}", double(held.all()) / 1e9);
  };
  const auto sent = [&](TrainingSplit split) {
    const Sent cost = step_cost(split, SumOrder::ring, config, ranks, ranks, 0);
    return fmt::format("{:.1f}", double(cost.bytes) / 1e9);
  };
  const HeldBytes fsdp = stored(TrainingSplit::fsdp, SumOrder::ring, config, ranks, ranks, 0);
  return {"three splits",
          fmt::format("Data parallel: 20 bytes for each of 6,738,415,616 parameters, {} GB, with "
                      "our copy of the gradient; without it 16 bytes and 107.8 GB. ZeRO-1: 8 + 8/4 "
                      "bytes, {} GB. FSDP: 16/4 bytes and {:.1f} GB of rooms, {} GB. A rank sends "
                      "{}, {} and {} GB. FSDP's are less than 3·(3/4)·4 bytes per parameter, since "
                      "the tables are gathered once.",
                      gigabytes(TrainingSplit::data), gigabytes(TrainingSplit::zero1),
                      double(fsdp.rooms) / 1e9, gigabytes(TrainingSplit::fsdp),
                      sent(TrainingSplit::data), sent(TrainingSplit::zero1),
                      sent(TrainingSplit::fsdp))};
}

std::vector<Solution> solutions() {
  return {bytes_of_a_step(), ring_or_tree(), order_of_a_sum(), three_splits()};
}

}  // namespace t2t
