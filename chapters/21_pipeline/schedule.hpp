// A pipeline's schedule: what each stage computes, and in which order.
//
// A model is cut into p stages of consecutive blocks, and a step's batch into m micro-batches. Each
// micro-batch goes forward through stages 0 … p − 1 and backward through p − 1 … 0:
//
//   GPipe   all forward, then all backward
//   1F1B    min(m, p − 1 − s) forward, then one forward and one backward in turn, then the rest
//
// A stage saves a micro-batch's activations from its forward to its backward pass. They are in
// flight: m of them under GPipe, at most p − s under 1F1B. Both schedules compute equally many
// operations, and with equal times are idle equally long. In both, each stage goes backward through
// the micro-batches in the order 0 … m − 1, in which one process adds their gradients.
// (GPipe: Huang et al. 2019. 1F1B with a flush after each step, PipeDream-Flush: Narayanan et al.
// 2021, "Memory-Efficient Pipeline-Parallel DNN Training".)
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace t2t {

enum class PipelineSchedule { gpipe, one_f_one_b };
/// "gpipe" or "1f1b". Throws std::invalid_argument for another name.
PipelineSchedule schedule_named(const std::string& name);

/// One micro-batch's pass through one stage.
struct Operation {
  enum class Pass { forward, backward };
  Pass pass;
  std::size_t part;  // the micro-batch, from 0

  bool operator==(const Operation&) const = default;
};

/// The operations of stage `stage` of so many, in order. Throws std::invalid_argument when there
/// are no stages, no parts, or no such stage.
std::vector<Operation> operations_of(PipelineSchedule schedule, std::size_t stages,
                                     std::size_t stage, std::size_t parts);

/// How many micro-batches a stage has in flight at most, by formula. Throws as operations_of does.
std::size_t most_in_flight(PipelineSchedule schedule, std::size_t stages, std::size_t stage,
                           std::size_t parts);
/// The same, counted in a list of operations.
std::size_t counted_in_flight(const std::vector<Operation>& operations);

/// The share of all time that a stage is idle when each stage takes as long as the others, and
/// messages take no time: (p − 1)/(m + p − 1). Both schedules share it. The share of the useful
/// time, (p − 1)/m, is often quoted under the same name.
constexpr double idle_share(std::size_t stages, std::size_t parts) {
  return double(stages - 1) / double(parts + stages - 1);
}

}  // namespace t2t
