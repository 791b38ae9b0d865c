// Chapter 20: the planner's counts, by hand and held against published trainings.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "20_split_models/planner/plan.hpp"
#include "20_split_models/planner/published.hpp"
#include "support/refuses.hpp"

namespace t2t::planner_tests {

/// Four blocks that can be counted by hand: attention has 2·8·(4 + 2)·2 = 192 weights, the network
/// 3·8·16 = 384, and each of two tables 10·8 = 80.
static constexpr ModelShape tiny{"tiny", 4, 8, 4, 2, 2, 10, 16};

static constexpr Cluster four{"four", 1000, 1e9, 4, 100, 10, 2};

TEST_CASE("by hand: the weights of a small model and of a mixture") {
  CHECK(attention_weights(tiny) == 192);
  CHECK(parameters(tiny) == 4 * (192 + 384) + 2 * 80);
  CHECK(active_parameters(tiny) == 4 * (192 + 384) + 80);
  ModelShape mixture = tiny;
  mixture.experts = 6, mixture.active = 2, mixture.shared = 1, mixture.dense_blocks = 1;
  mixture.dense_F = 32;
  CHECK(parameters(mixture) == 3 * (192 + 7 * 384) + (192 + 768) + 160);
  CHECK(active_parameters(mixture) == 3 * (192 + 3 * 384) + (192 + 768) + 80);
}

TEST_CASE("the known models have their published numbers of weights") {
  const auto within = [](double got, double wanted) { return std::abs(got / wanted - 1) < 0.01; };
  CHECK(within(parameters(known_model("llama-2-7b")), 6.74e9));
  CHECK(within(parameters(known_model("llama-2-70b")), 68.98e9));
  CHECK(within(parameters(known_model("gpt-3-175b")), 175e9));
  CHECK(within(parameters(known_model("mixtral-8x7b")), 46.7e9));
  // Published with the embedding, which multiplies nothing.
  CHECK(within(active_parameters(known_model("mixtral-8x7b")) + 32'000 * 4096, 12.9e9));
  CHECK(within(parameters(known_model("deepseek-v3")), 671e9));
  CHECK(within(active_parameters(known_model("deepseek-v3")), 36.6e9));
  CHECK(within(parameters(known_model("llama-3-405b")), 405e9));
}

TEST_CASE("by hand: the FLOPs of a step, and how long its products take") {
  // 6 tokens with 2·(2304 + 80) FLOPs of products and 4·4·4·2·3/2 of attention, three passes.
  const Job job{3, 2};
  CHECK(step_flops(tiny, job, false) == 3 * 6 * (2 * 2384 + 4 * 32 * 1.5));
  CHECK(step_flops(tiny, job, true) == 4 * 6 * (2 * 2384 + 4 * 32 * 1.5));
  CHECK(step_flops(tiny, {3, 2, false}, false) == 3 * 6 * (2 * 2384 + 4 * 32 * 3.0));
  const StepTime time = step_time(tiny, four, job, {.d = 2});
  CHECK(time.products ==
        doctest::Approx(step_flops(tiny, job, false) / (2 * 1000 * product_efficiency(8))));
}

TEST_CASE("by hand: what each group of ranks sends") {
  // 8 tokens of 8 elements in 16 bits are 128 bytes. In each of four blocks, a rank of two sends
  // half of this in each half of an all-reduce: two all-reduces forward and two backward.
  const StepTime tensor = step_time(tiny, four, {4, 2}, {.t = 2});
  CHECK(tensor.tensor == doctest::Approx(4 * 2 * 4 * 64 / 80.0));
  CHECK(tensor.data == 0);
  CHECK(tensor.bubble == 0);
  // Recomputation repeats the forward pass's all-reduces.
  CHECK(step_time(tiny, four, {4, 2}, {.t = 2, .recompute = true}).tensor ==
        doctest::Approx(1.5 * tensor.tensor));
  // Two stages and four micro-batches, in two chunks: a bubble of 1/(4·2) of the work.
  const StepTime pipeline = step_time(tiny, four, {4, 4}, {.p = 2, .chunks = 2});
  CHECK(pipeline.bubble == doctest::Approx(pipeline.products / 8));
  // All 2,464 weights in 16 bits, half of them twice, through the network between nodes of two.
  const StepTime data = step_time(tiny, four, {4, 4, true, false}, {.d = 4});
  CHECK(data.data == doctest::Approx(2 * 0.75 * 2 * 2464 / 10));
  // ZeRO-3 with two micro-batches: three such halves in each.
  CHECK(step_time(tiny, four, {4, 8, true, false}, {.d = 4, .sharding = Sharding::all}).data ==
        doctest::Approx(6 * 0.75 * 2 * 2464 / 10));
}

TEST_CASE("what overlaps with products takes no time of its own") {
  const Cluster slow{"slow", 1e5, 1e9, 4, 100, 10, 2};  // sends for longer than it computes
  const Job job{4, 8}, one_after_another{4, 8, true, false};
  for (const Sharding sharding : {Sharding::optimizer, Sharding::all}) {
    const Layout layout{.d = 4, .sharding = sharding};
    const StepTime both = step_time(tiny, slow, job, layout);
    const double sent = step_time(tiny, slow, one_after_another, layout).data;
    // ZeRO-3 sends in both micro-batches, otherwise one micro-batch's products are beside it.
    const double beside = both.products / (sharding == Sharding::all ? 1 : 2);
    CHECK(both.data == doctest::Approx(sent - beside));
  }
  const Cluster fast{"fast", 1, 1e9, 4, 100, 10, 2};
  CHECK(step_time(tiny, fast, job, {.d = 4}).data == 0);
}

TEST_CASE("by hand: a context group gathers keys and values, and their gradients are added") {
  // Of 8 tokens, each rank of two has 4. In each of 4 blocks, half of 8·(4 + 4)·2 bytes leaves it:
  // forward, backward, and as gradients.
  const StepTime time = step_time(tiny, four, {8, 1}, {.c = 2});
  CHECK(time.context == doctest::Approx(3 * 4 * 8 * 8 * 2 / 2 / 80.0));
  CHECK(time.products == step_time(tiny, four, {8, 2}, {.d = 2}).products / 2);
}

TEST_CASE("places of a micro-batch that stay empty take time") {
  const double full = step_time(tiny, four, {4, 4}, {.d = 4}).products;
  CHECK(micro_batches({.d = 4}, {4, 5}) == 2);
  CHECK(step_time(tiny, four, {4, 5}, {.d = 4}).products == doctest::Approx(2 * full));
}

TEST_CASE("by hand: an all-to-all sends each chosen token's row there and back") {
  ModelShape mixture = tiny;
  mixture.experts = 4, mixture.active = 2;
  // A rank has 4 tokens and 2·4 rows of 16 bytes, of which half leave it: in 4 blocks, in both
  // passes, there and back.
  const StepTime time = step_time(mixture, four, {4, 2}, {.d = 2, .e = 2});
  CHECK(time.experts == doctest::Approx(4 * 2 * 2 * (8 * 16 / 2) / 80.0));
}

TEST_CASE("by hand: what a rank stores under each sharding") {
  const double all = 2464;
  const Job job{4, 4};
  const RankMemory none = rank_memory(tiny, job, {.d = 4, .sharding = Sharding::none});
  CHECK(none.weights == 2 * all);
  CHECK(none.gradients == 2 * all);
  CHECK(none.optimizer == 12 * all);
  const RankMemory zero1 = rank_memory(tiny, job, {.d = 4});
  CHECK(zero1.weights == 2 * all);
  CHECK(zero1.optimizer == 3 * all);
  const RankMemory zero3 = rank_memory(tiny, job, {.d = 4, .sharding = Sharding::all});
  CHECK(zero3.weights == 2 * (all / 4 + 2 * 576));
  CHECK(zero3.optimizer == 3 * all);
  // A token's block keeps 2·(8 + 8 + 4) + 2·16 elements, and only 8 if the rest is recomputed.
  CHECK(none.activations == 2 * 4 * (4 * 72 + 20));
  CHECK(rank_memory(tiny, job, {.d = 4, .recompute = true}).activations ==
        2 * 4 * (4 * 8 + 72 + 20));
  // The first of two stages keeps two of four micro-batches, in two blocks, and has one table.
  const RankMemory stage = rank_memory(tiny, {4, 8}, {.p = 2, .d = 2});
  CHECK(stage.weights == 2 * (2 * 576 + 80));
  CHECK(stage.activations == 2 * 4 * 4 * 72);
}

TEST_CASE("experts that are divided among ranks share their optimizer with fewer copies") {
  ModelShape mixture = tiny;
  mixture.experts = 4, mixture.active = 2;
  const Job job{4, 4};
  const double experts = 4 * 4 * 384, others = 4 * 192 + 160;
  const RankMemory together = rank_memory(mixture, job, {.d = 4});
  CHECK(together.weights == 2 * (experts + others));
  CHECK(together.optimizer == 12 * (experts + others) / 4);
  const RankMemory apart = rank_memory(mixture, job, {.d = 4, .e = 2});
  CHECK(apart.weights == 2 * (experts / 2 + others));
  CHECK(apart.optimizer == 12 * (experts + others) / 4);  // each rank has half the copies of half
}

TEST_CASE("what is published is predicted within 10 %, and the two fitted trainings within 1 %") {
  double squares = 0, compared = 0;
  for (const Published& training : published_trainings()) {
    const double error = predicted_flops(training) / training.flops - 1;
    CAPTURE(training.model.name);
    CHECK(std::abs(error) < (training.fitted ? 0.01 : 0.10));
    if (training.fitted || training.source != "Megatron-LM") continue;
    squares += error * error, ++compared;
  }
  CHECK(compared == 8);
  CHECK(std::sqrt(squares / compared) < 0.05);
}

TEST_CASE(
    "where messages may be hidden, what is published lies between both limits, or 15 % below") {
  for (const Published& training : published_with_hidden_messages()) {
    CAPTURE(training.source);
    CAPTURE(training.cluster.devices);
    CHECK(predicted_flops(training) < predicted_if_hidden(training));
    CHECK(training.flops > 0.85 * predicted_flops(training));
    CHECK(training.flops < predicted_if_hidden(training));
  }
}

TEST_CASE("GPipe's published speed-ups, 3.4 on 4 stages and 6.3 on 8, are at most 10 % below") {
  for (const auto& [p, published] : {std::pair{4ul, 3.4}, std::pair{8ul, 6.3}}) {
    const Layout stages = {.p = p};
    const StepTime time = step_time(tiny, four, {4, 32}, stages);  // 32 micro-batches
    const double speed_up = double(p) / (1 + time.bubble / time.products);
    CHECK(speed_up > published);
    CHECK(speed_up < 1.1 * published);
  }
}

TEST_CASE("plans fit into memory, use all devices, and come in the order of their time") {
  for (const ModelShape& model : known_models()) {
    const Cluster cluster = cluster_of("h100", 1024);
    const Job job{4096, 1024};
    const std::vector<Plan> found = plans(model, cluster, job, 20);
    REQUIRE(!found.empty());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(devices_of(found[i].layout) == 1024);
      CHECK(total(found[i].memory) <= cluster.memory);
      CHECK(found[i].layout.d <= job.B);
      if (i > 0) CHECK(total(found[i - 1].time) <= total(found[i].time));
    }
  }
}

TEST_CASE("a model that fits on one device is not split, and needs no messages there") {
  const Plan best = plans(tiny, {"one", 1000, 1e9, 1, 100, 10}, {4, 4}, 1).front();
  CHECK(layout_text(best.layout) == "one device");
  CHECK(total(best.time) == best.time.products);
}

TEST_CASE("what does not fit or does not exist is refused with its numbers") {
  REFUSES_AS(
      plans(known_model("llama-2-70b"), cluster_of("a100", 8), {4096, 8}, 1),
      "llama-2-70b does not fit into 8 devices of 80 GB: the layout that needs least, 139 GB "
      "a device",
      std::runtime_error);
  REFUSES_AS(plans(tiny, cluster_of("a100", 100'000), {4, 4}, 1),
             "100000 devices are too many for 4 sequences of tiny: no layout uses them all",
             std::runtime_error);
  REFUSES(known_model("gpt-5"),
          "--plan: wanted one of llama-2-7b, llama-2-70b, gpt-3-175b, mixtral-8x7b, deepseek-v3, "
          "llama-3-405b, got gpt-5");
  REFUSES(cluster_of("abacus", 1), "--accelerator: wanted a100, h100 or h800, got abacus");
  REFUSES(plans(tiny, four, {0, 4}, 1), "T: wanted at least 1, got 0");
}

}  // namespace t2t::planner_tests
