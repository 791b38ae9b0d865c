#include "20_split_models/planner/step_time.hpp"

#include <algorithm>

#include "20_split_models/planner/rank_memory.hpp"

namespace t2t {

static constexpr double bytes_per_element = 2;
static constexpr double node_share = 0.8;  // of a node's bandwidth that messages reach

double product_efficiency(std::size_t C) { return 0.597 / (1 + 600 / double(C)); }

double step_flops(const ModelShape& model, const Job& job, bool recompute) {
  const double tokens = double(job.B * job.T), passes = recompute ? 4 : 3;
  const double keys = double(job.T) * (job.causal ? 0.5 : 1);
  const double scores = 4 * double(model.L * model.H * model.D) * keys;
  return passes * tokens * (2 * active_parameters(model) + scores);
}

/// Of the links between ranks of which the first and the last are `span` devices apart.
static double bandwidth(const Cluster& cluster, std::size_t span) {
  return span <= cluster.node ? node_share * cluster.node_bandwidth : cluster.network;
}

/// What a rank of a ring sends of n bytes in a reduce-scatter or an all-gather.
static double ring_bytes(double n, std::size_t ranks) {
  return n * double(ranks - 1) / double(ranks);
}

/// What a rank's activations of one micro-batch need: the bytes of a token's C elements in each of
/// its blocks.
static double stream_bytes(const ModelShape& model, const Job& job, const Layout& layout) {
  const double tokens = double(layout.micro_batch * job.T) / double(layout.c);
  return bytes_per_element * tokens * double(model.C * model.L) / double(layout.p);
}

/// The keys and values that a rank gathers in its blocks, for a micro-batch of whole sequences.
static double key_bytes(const ModelShape& model, const Job& job, const Layout& layout) {
  const double tokens = double(layout.micro_batch * job.T);
  return bytes_per_element * tokens * double(2 * model.G * model.D * model.L) /
         double(layout.p * layout.t);
}

/// What data parallel ranks send in a step and can't hide.
static double data_seconds(const ModelShape& model, const Cluster& cluster, const Job& job,
                           const Layout& layout, double products) {
  const bool shares_all = layout.sharding == Sharding::all;
  const double m = double(micro_batches(layout, job));
  const double weights = bytes_per_element * rank_parameters(model, layout);
  const double seconds = (shares_all ? 3 * m : 2) * ring_bytes(weights, layout.d * layout.c) /
                         bandwidth(cluster, devices_of(layout));
  const double beside = !job.overlaps ? 0 : shares_all ? products : products / m;
  return std::max(0.0, seconds - beside);
}

/// What a rank sends in its micro-batches.
static double messages(const StepTime& time) { return time.tensor + time.context + time.experts; }

StepTime step_time(const ModelShape& model, const Cluster& cluster, const Job& job,
                   const Layout& layout) {
  const double passes = layout.recompute ? 3 : 2;  // forward passes and the backward pass
  const double m = double(micro_batches(layout, job));
  const double stream = stream_bytes(model, job, layout);
  const Job computed = {job.T, micro_batches(layout, job) * layout.d * layout.micro_batch,
                        job.causal};

  StepTime time{};
  time.products = step_flops(model, computed, layout.recompute) /
                  (double(devices_of(layout)) * cluster.peak * product_efficiency(model.C));
  time.tensor = m * passes * 4 * ring_bytes(stream, layout.t) / bandwidth(cluster, layout.t);
  time.context = m * (passes + 1) * ring_bytes(key_bytes(model, job, layout), layout.c) /
                 bandwidth(cluster, layout.t * layout.c);
  time.experts = m * passes * 2 * double(model.active) * ring_bytes(stream, layout.e) /
                 double(layout.t) / bandwidth(cluster, layout.t * layout.c * layout.e);
  time.bubble =
      (time.products + messages(time)) * double(layout.p - 1) / (m * double(layout.chunks));
  time.data = data_seconds(model, cluster, job, layout, time.products);
  return time;
}

double total(const StepTime& time) {
  return time.products + messages(time) + time.bubble + time.data;
}

double with_messages_hidden(const StepTime& time) {
  const double waiting = time.bubble / (time.products + messages(time));
  return std::max(time.products * (1 + waiting), messages(time) * (1 + waiting) + time.data);
}

}  // namespace t2t
