#include "18_experiments/experiments.hpp"

#include <cmath>
#include <type_traits>
#include <utility>

#include "03_rope/positions/positions.hpp"
#include "09_language_model/accounts/accounts.hpp"
#include "18_experiments/lstm/lstm_model.hpp"

namespace t2t {

std::size_t parameter_count(const Variant& variant) {
  if (variant.lstm_layers == 0) {
    const Parameters count = count_parameters(variant.config);
    const BlockSettings& block = variant.config.block;
    return total(count) - (variant.changes.norms ? 0 : count.norms) -
           (variant.squares ? variant.config.L * block.F * block.C : 0);
  }
  Random random(1);
  return parameter_count(
      draw_lstm_model(variant.config.V, variant.lstm_width, variant.lstm_layers, random));
}

/// The baseline of all others: LLaMA's choices, C = 64, H = 4.
static Config base(std::size_t L = 4) {
  return {
      .block = llama_style(64, 4, 4, 170), .L = L, .V = 256, .T_max = experiment_T, .tied = true};
}
template <class Change>
static Variant variant(std::string name, Change change, std::size_t L = 4) {
  Variant made{std::move(name), base(L)};
  change(made);
  return made;
}
static void as_it_is(Variant&) {}

static Experiment norm_places(const char* name, std::size_t L, std::size_t steps) {
  const auto post = [](Variant& v) { v.config.block.norm_place = NormPlace::after; };
  const auto cold = [](Variant& v) { v.warm_up = false; };
  return {name,
          "Where does the norm belong, and who needs a warm-up?",
          {variant("pre-norm", as_it_is, L), variant("pre-norm, no warm-up", cold, L),
           variant("post-norm", post, L),
           variant(
               "post-norm, no warm-up", [&](Variant& v) { post(v), cold(v); }, L)},
          steps};
}

/// A network of two matrices needs F · 3/2 for as many weights as a network of three.
static auto plain(Activation activation) {
  return [=](Variant& v) {
    v.config.block.activation = activation, v.config.block.F = v.config.block.F * 3 / 2;
  };
}

static Experiment networks() {
  const auto gated = [](Activation activation) {
    return [=](Variant& v) { v.config.block.activation = activation; };
  };
  Experiment made{
      "networks",
      "Which feed-forward network, with equally many parameters?",
      {variant("relu, F = 255", plain(Activation::relu)),
       variant("gelu, F = 255", plain(Activation::gelu)),
       variant("silu, F = 255", plain(Activation::silu)),
       variant("reglu, F = 170", gated(Activation::reglu)), variant("swiglu, F = 170", as_it_is)}};
  made.dead_units = true;
  return made;
}

/// ReLU's square needs no kernel of its own: see Variant::squares.
static void relu_squared(Variant& v) {
  plain(Activation::reglu)(v);
  v.squares = true;
  v.redrawn = [](ModelWeights& weights, const Config&) {
    for (BlockWeights& block : weights.blocks)
      block.feed_forward.w_gate.floats() = block.feed_forward.w_up.floats();
  };
}

static Experiment squared_networks() {
  return {"squared-networks",
          "Does the square of ReLU take the place of a gate?",
          {variant("relu, F = 255", plain(Activation::relu)),
           variant("relu squared, F = 255", relu_squared), variant("swiglu, F = 170", as_it_is)}};
}

/// The same question with models of twice the width, the gated one with the plain ones' rivals.
static Experiment wide_networks() {
  const auto wide = [](auto change) {
    return [=](Variant& v) {
      v.config.block = llama_style(128, 4, 4, 340);
      change(v);
    };
  };
  return {"wide-networks",
          "Which feed-forward network, at twice the width?",
          {variant("relu, F = 510", wide(plain(Activation::relu))),
           variant("gelu, F = 510", wide(plain(Activation::gelu))),
           variant("swiglu, F = 340", wide(as_it_is))}};
}

static Experiment roots() {
  const auto undivided = [](Variant& v) { v.config.block.score_scale = 1; };
  const auto one_head = [](Variant& v) { v.config.block = llama_style(64, 1, 1, 170); };
  return {"roots",
          "What if scores are not divided by the root of D?",
          {variant("D = 16, divided", as_it_is), variant("D = 16, not divided", undivided),
           variant("D = 64, divided", one_head),
           variant("D = 64, not divided", [&](Variant& v) { one_head(v), undivided(v); })}};
}

static Experiment residuals() {
  const auto without = [](Variant& v) { v.changes.residuals = false; };
  return {"residuals",
          "What if a sublayer's result replaces the stream?",
          {variant("L = 2, with residuals", as_it_is, 2), variant("L = 2, without", without, 2),
           variant("L = 8, with residuals", as_it_is, 8), variant("L = 8, without", without, 8)}};
}

static Experiment recurrence() {
  const auto lstm = [](std::size_t layers, std::size_t width) {
    return [=](Variant& v) { v.lstm_layers = layers, v.lstm_width = width; };
  };
  return {"recurrence",
          "Does a transformer learn more than an LSTM with as many parameters?",
          {variant("transformer", as_it_is),
           variant("LSTM of 1 layer, C = 148: as many parameters", lstm(1, 148)),
           variant("LSTM of 2 layers, C = 107: as many parameters", lstm(2, 107))}};
}

static Experiment longer_recurrence() {
  Experiment longer = recurrence();
  longer.name = "recurrence-longer";
  longer.question = "Does it still when both are trained four times as long?";
  longer.variants.pop_back();
  longer.steps = 1200;
  return longer;
}

static Experiment masked() {
  const auto hides = [](float share) {
    return [=](Variant& v) { v.changes.causal = false, v.hidden = share; };
  };
  return {"masked",
          "What does a model learn if it also sees the bytes that follow?",
          {variant("causal: the next byte", as_it_is), variant("15 of 100 hidden", hides(0.15f)),
           variant("40 of 100 hidden", hides(0.4f))}};
}

static Experiment positions() {
  const auto far = [](Variant& v) { v.config.T_max = 4 * experiment_T; };
  // A table of positions that is not learned.
  const auto sinusoids = [=](float size) {
    return [=](Variant& v) {
      far(v), v.config.block.uses_rope = false, v.config.learned_positions = true;
      v.redrawn = [=](ModelWeights& weights, const Config& config) {
        weights.positions = Tensor<2>(size * sinusoidal_positions(config.T_max, config.block.C));
      };
      v.learned = [](const TensorInfo& info) { return info.name != "positions"; };
    };
  };
  return {"positions",
          "How does a model know a token's position, and how does it read longer sequences?",
          {variant("RoPE", far),
           variant("learned positions",
                   [&](Variant& v) {
                     far(v), v.config.block.uses_rope = false, v.config.learned_positions = true;
                   }),
           variant("ALiBi",
                   [&](Variant& v) {
                     far(v), v.config.block.uses_rope = false;
                     v.changes.slopes = alibi_slopes(v.config.block.H);
                   }),
           variant("sinusoids", sinusoids(1)), variant("sinusoids times 0.1", sinusoids(0.1f)),
           variant("none", [&](Variant& v) { far(v), v.config.block.uses_rope = false; })},
          300,
          true};
}

/// So little text that the model memorizes it.
static Experiment dropout() {
  const auto leaves_out = [](float p) { return [=](Variant& v) { v.dropout = p; }; };
  const auto weights_too = [=](Variant& v) { leaves_out(0.1f)(v), v.changes.drops_weights = true; };
  Experiment made{"dropout",
                  "Does dropout help a model that reads a short text again and again?",
                  {variant("no dropout", as_it_is), variant("p = 0.1", leaves_out(0.1f)),
                   variant("p = 0.1, attention's weights too", weights_too),
                   variant("p = 0.3", leaves_out(0.3f))},
                  600};
  made.most_text = 10'000;
  return made;
}

static Experiment heads() {
  const auto groups = [](std::size_t G, std::size_t F) {
    return [=](Variant& v) { v.config.block.G = G, v.config.block.F = F; };
  };
  return {"heads",
          "What does it cost to share heads of keys and values?",
          {variant("MHA, G = 4", as_it_is), variant("GQA, G = 2", groups(2, 170)),
           variant("GQA, G = 2, F = 191: as many parameters", groups(2, 191)),
           variant("MQA, G = 1", groups(1, 170)),
           variant("MQA, G = 1, F = 202: as many parameters", groups(1, 202))}};
}

/// Multiplies all matrices of a role by this factor of their number of inputs and of L.
template <class Factor>
static auto times(Role role, Factor factor) {
  return [=](ModelWeights& weights, const Config& config) {
    for_each_tensor(weights, config, [&]<class Stored>(const TensorInfo& info, Stored& tensor) {
      if constexpr (std::is_same_v<Stored, Weight>)
        if (info.role == role && info.size() > 0)
          tensor.floats() *= float(factor(double(info.cols), double(config.L)));
    });
  };
}

static Experiment initialization() {
  const auto all = [](auto of_matrix, auto into_stream) {
    return [=](Variant& v) {
      v.redrawn = [=](ModelWeights& weights, const Config& config) {
        times(Role::matrix, of_matrix)(weights, config);
        times(Role::into_stream, into_stream)(weights, config);
      };
    };
  };
  const auto one = [](double, double) { return 1.0; };
  const auto undo = [](double, double L) { return std::sqrt(2 * L); };
  const auto small = [](double in, double) { return 0.02 * std::sqrt(in); };
  const auto small_undone = [](double in, double L) {
    return 0.02 * std::sqrt(in) * std::sqrt(2 * L);
  };
  const auto large = [](double, double) { return 4.0; };
  return {"initialization",
          "How large should the initial weights be?",
          {variant("1/sqrt(inputs), into the stream times 1/sqrt(2L)", as_it_is),
           variant("without 1/sqrt(2L)", all(one, undo)),
           variant("0.02, into the stream times 1/sqrt(2L)", all(small, small)),
           variant("0.02 everywhere", all(small, small_undone)),
           variant("four times as large", all(large, large))}};
}

Experiment short_experiment() {
  const Config small{
      .block = llama_style(16, 2, 2, 42), .L = 2, .V = 256, .T_max = experiment_T, .tied = true};
  Experiment made{"short",
                  "What if a sublayer's result replaces the stream, in two small layers?",
                  {{"residuals", small}, {"no residuals", small}},
                  32};
  made.variants[1].changes.residuals = false;
  made.first_rate = 0.032f;
  return made;
}

std::vector<Experiment> experiments() {
  const auto no_norms = [](Variant& v) { v.changes.norms = false; };
  return {
      norm_places("norm-places", 4, 300),
      norm_places("norm-places-deep", 16, 150),
      {"norms",
       "RMSNorm, LayerNorm or none?",
       {variant("RMSNorm", as_it_is),
        variant("LayerNorm", [](Variant& v) { v.config.block.norm = Norm::layer; }),
        variant("no norms", no_norms)}},
      {"norms-deep",
       "RMSNorm or no norm, in 16 layers?",
       {variant("RMSNorm", as_it_is, 16), variant("no norms", no_norms, 16)},
       150},
      networks(),
      squared_networks(),
      wide_networks(),
      positions(),
      roots(),
      residuals(),
      recurrence(),
      longer_recurrence(),
      masked(),
      heads(),
      dropout(),
      {"head",
       "Should the head be the embedding's table?",
       {variant("tied", as_it_is), variant("untied", [](Variant& v) { v.config.tied = false; })}},
      initialization()};
}

}  // namespace t2t
