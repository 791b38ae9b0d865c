// Shows what activations do to a number, what a gate adds to that, and what it costs.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "01_embedding/embedding.hpp"
#include "07_swiglu/fast/activation_rows.hpp"
#include "07_swiglu/fast/feed_forward_rows.hpp"
#include "07_swiglu/fast/feed_forward_weights.hpp"
#include "07_swiglu/feed_forward.hpp"
#include "07_swiglu/shows/curves.hpp"
#include "07_swiglu/shows/figure.hpp"
#include "07_swiglu/shows/product_network.hpp"
#include "files/files.hpp"
#include "linalg.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "program/program.hpp"
#include "statistics.hpp"
#include "timing/measure.hpp"

using namespace t2t;
using Use = Activation;

static std::string cell(double value, int digits) { return fmt::format("{:.{}f}", value, digits); }
static std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

static void show_growth(const Tensor<2>& x, std::size_t F, std::size_t seed) {
  print_section("The size of the output, and by what factor it grows when x doubles");
  Table table({"", ">relu", ">gelu", ">silu", ">glu", ">reglu", ">geglu", ">swiglu"});
  std::vector<std::string> sizes = {"rms of y"}, factors = {"factor"};
  const Tensor<2> twice = 2 * x;  // [T, C]
  for (const Use use :
       {Use::relu, Use::gelu, Use::silu, Use::glu, Use::reglu, Use::geglu, Use::swiglu}) {
    Random random(seed + 1);
    const FeedForwardWeights weights = feed_forward_weights(x.shape(1), F, use, random);
    const double once = root_mean_square(feed_forward(x, weights, use));
    sizes.push_back(cell(once, 2));
    factors.push_back(cell(root_mean_square(feed_forward(twice, weights, use)) / once, 2));
  }
  table.add(sizes);
  table.add(factors);
  table.print();
}

static void show_histogram(const Tensor<2>& gate) {
  print_section("The gate over the whole text");
  constexpr std::size_t bins = 8;  // of a half each, from -2 to 2; the ends take what lies outside
  std::array<std::size_t, bins> counts{};
  for (const float value : gate)
    ++counts[std::size_t(std::clamp(int(std::floor((value + 2) * 2)), 0, int(bins) - 1))];

  const double most = double(*std::ranges::max_element(counts));
  Table table({"gate", ">share", "", ">silu, in the middle"});
  for (std::size_t i = 0; i < bins; ++i) {
    const double low = double(i) / 2 - 2;
    const Tensor<2> middle = {{float(low) + 0.25f}};
    const bool inside = i > 0 && i + 1 < bins;
    table.add({inside   ? fmt::format("{:>4.1f} to {:>4.1f}", low, low + 0.5)
               : i == 0 ? fmt::format("   below {:>4.1f}", low + 0.5)
                        : fmt::format("   above {:>4.1f}", low),
               percent(double(counts[i]) / double(gate.size())), bar(double(counts[i]) / most, 32),
               inside ? cell(silu(middle)(0, 0), 2) : ""});
  }
  table.print();
}

static std::vector<std::string> byte_labels(const std::vector<int>& ids) {
  std::vector<std::string> labels;
  for (const int id : ids)
    labels.push_back(id < 0x80 ? visible(std::string(1, char(id))) : fmt::format("{:02x}", id));
  return labels;
}

static void show_text(const Program& program, std::size_t T_most, std::size_t C,
                      std::size_t multiple) {
  const std::vector<int> ids = byte_ids(program.text(T_most));  // [T]
  const std::size_t T = ids.size(), F = gated_width(C, multiple);

  // Vectors of elements from N(0, 1), the size that a norm (chapter 02) gives them.
  Random random(program.seed());
  const Tensor<2> table = random.normal<2>({256, C});  // [V, C]
  Tensor<2> x = empty(T, C), y = empty(T, C);
  embed_rows(ids, table, x);

  // [call]
  const FeedForwardWeights weights = feed_forward_weights(C, F, Use::swiglu, random);
  FeedForwardScratch scratch(T, F, Use::swiglu);           // for calls of up to T tokens
  feed_forward_rows(x, weights, Use::swiglu, scratch, y);  // x and y: [T, C]
  // [/call]
  const Tensor<2> gate = matmul_bt(x, weights.w_gate), up = matmul_bt(x, weights.w_up);  // [T, F]
  const Tensor<2> hidden = swiglu(gate, up), open = sigmoid(gate);                       // [T, F]

  print_section("What flows through");
  print_shapes({{"x", {T, C}, "the text, one token for each byte"},
                {"w_gate, w_up", {F, C}, "each row makes one channel of gate or up"},
                {"gate, up", {T, F}, "what decides, and what passes"},
                {"hidden", {T, F}, "silu(gate) · up"},
                {"w_down", {C, F}, ""},
                {"y", {T, C}, "what a block adds to x"}});
  program.save("ids", ids);
  const std::pair<const char*, const Tensor<2>*> all[] = {{"x", &x},
                                                          {"w_gate", &weights.w_gate.floats()},
                                                          {"w_up", &weights.w_up.floats()},
                                                          {"gate", &gate},
                                                          {"w_down", &weights.w_down.floats()},
                                                          {"up", &up},
                                                          {"y", &y},
                                                          {"hidden", &hidden}};
  for (const auto& [name, tensor] : all) program.save(name, *tensor);

  print_section("How far each gate is open: sigmoid(gate), first tokens by first units");
  print_heat_map({open.data(), std::min<std::size_t>(T, 7), std::min<std::size_t>(F, 34), F},
                 {.row_labels = byte_labels(ids), .col_labels = {}});
  fmt::print("\n");
  print_paragraph(
      "Each row is a token, here a byte, and each column a unit; dark is open. Equal bytes have "
      "equal gates wherever they stand, because the gates depend on the token's vector alone. What "
      "the network knows of other tokens comes from the attention before it.");

  show_histogram(gate);
  show_growth(x, F, program.seed());
}

static void show_equal_parameters() {
  print_section("Parameters, compared with a plain network of width 4C");
  struct Line {
    const char* name;
    std::size_t C, F;
  };
  Table table({"gated network", ">C", ">F", ">3·C·F", ">8·C²", ">network", ">block"});
  for (const Line& line :
       {Line{"equal F, F = 4C", 4096, 4 * 4096}, Line{"two thirds", 4096, gated_width(4096, 1)},
        Line{"LLaMA-7B: rounded", 4096, gated_width(4096)},
        Line{"SmolLM2: C = 3·192", 576, gated_width(576)}}) {
    const std::size_t three = 3 * line.C * line.F, two = 8 * line.C * line.C;
    const std::size_t attention = 4 * line.C * line.C;
    const auto more = [](std::size_t ours, std::size_t plain) {
      return fmt::format("{:+.1f} %",
                         std::round(1000 * (double(ours) / double(plain) - 1)) / 10 + 0.0);
    };
    table.add({line.name, std::to_string(line.C), std::to_string(line.F), with_commas(three),
               with_commas(two), more(three, two), more(attention + three, attention + two)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The last column is for a block, which also has attention's four matrices, 4·C² parameters "
      "when each query head has its own key and value head.");
}

static void show_share() {
  print_section("Where a block's FLOPs go: LLaMA-7B, for one token in a prompt of T tokens");
  const double C = 4096, F = 11008;
  Table table({">T", ">feed-forward", ">projections", ">scores and mix", "feed-forward as a bar"});
  for (const std::size_t T : {128, 2048, 8192, 131072}) {
    const double network = 6 * C * F, projections = 8 * C * C;
    const double scores = 2 * C * double(T + 1);  // two products of length C with (T + 1)/2 tokens
    const double all = network + projections + scores;
    table.add({std::to_string(T), percent(network / all), percent(projections / all),
               percent(scores / all), bar(network / all, 24)});
  }
  table.print();
}

static void show_speed(std::size_t C, std::size_t seed) {
  print_section("Speed");
  Table table({"network", ">F", ">one token", ">", ">128 tokens", ">"});
  double plain[2] = {0, 0}, seconds[2], flops = 0;
  for (const auto& [name, use, F] :
       {std::tuple("plain gelu_tanh", Use::gelu_tanh, 4 * C),
        std::tuple("SwiGLU, equal F", Use::swiglu, 4 * C),
        std::tuple("SwiGLU, equal parameters", Use::swiglu, gated_width(C, 32))}) {
    Random random(seed);
    const FeedForwardWeights weights = feed_forward_weights(C, F, use, random);
    FeedForwardScratch scratch(128, F, use);
    const Tensor<2> x = random.normal<2>({128, C});
    Tensor<2> y = empty(128, C);
    for (const int many : {0, 1}) {
      const std::size_t T = many ? 128 : 1;
      seconds[many] = median_seconds([&, use = use] {
        feed_forward_rows(ConstMatrix(x).rows_from(0, T), weights, use, scratch,
                          Matrix(y).rows_from(0, T));
      });
      if (plain[many] == 0) plain[many] = seconds[many];
    }
    table.add({name, std::to_string(F), duration_text(seconds[0]),
               fmt::format("{:.2f}", seconds[0] / plain[0]), duration_text(seconds[1]),
               fmt::format("{:.2f}", seconds[1] / plain[1])});
    flops = 2 * 128 * double(parameter_count(weights));
  }
  table.print();
  fmt::print("\n");
  print_roofline_flops("SwiGLU network, 128 tokens", seconds[1], flops);

  const Tensor<2> gate = Random(seed).normal<2>({2048, 2048}), up = gate;
  Tensor<2> y = empty(2048, 2048);
  const double row_seconds = median_seconds([&] { gated_rows(Use::swiglu, gate, up, y); });
  print_roofline_bytes("swiglu alone, [2048, 2048]", row_seconds, 3.0 * double(y.size()) * 4,
                       copy_bandwidth(), "copying memory");
}

/// The memory of the text's network and its rows, or of the timed one if that is larger.
static double bytes_needed(double T, double C, double F, double speed_C) {
  const double of_text = 3 * C * F + T * (8 * F + 4 * C) + 256 * C;
  return sizeof(float) * std::max(of_text, speed_C * (12 * speed_C + 128 * 10));
}

int main(int argc, char** argv) {
  std::size_t T = 512, C = 256, multiple = 1, speed_width = 1024;
  std::string svg;
  Program program("07_swiglu", "The feed-forward network: activations, gates, and what they cost.");
  program.takes_text();
  program.size("tokens", T, "bytes of the text, one token each, T");
  program.size("width", C, "width of a token's vector, C; F is two thirds of 4C");
  program.size("multiple", multiple, "F is rounded up to a multiple of this");
  program.size("speed-width", speed_width, "width C of the networks that are timed");
  program.output("svg", svg, "write the chapter's figure to this file and stop");
  program.has_solutions(solutions);
  return program.run(argc, argv, [&] {
    if (!svg.empty()) return write_file(svg, figure_of_curves());
    const double tokens = double(program.text(T).size()), F = double(gated_width(C, multiple));
    expect_memory(bytes_needed(tokens, double(C), F, double(speed_width)),
                  "--tokens, --width, --multiple and --speed-width");
    show_curves();
    show_gates();
    show_product();
    show_text(program, T, C, multiple);
    show_equal_parameters();
    show_share();
    show_speed(speed_width, program.seed());
    fmt::print("\n");
    print_paragraph(
        "The page: docs/07_swiglu.md. Next: ./learn run 08, the block, which joins attention and "
        "this network.");
  });
}
