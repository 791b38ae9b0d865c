#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "11_flash_attention/shows/figure.hpp"
#include "figure/axes.hpp"
#include "files/files.hpp"

#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>

namespace t2t {

using Json = nlohmann::json;

namespace {

/// TFLOP/s by the name in the record, and what limits them: the highest that was measured of each.
struct Speeds {
  std::map<std::string, double, std::less<>> of;
  double floats = 0, mma = 0, matrix = 0;  // products in float32, mma.sync, products in bf16
};

/// A row: its name in the record, its name on the page, and its limit.
struct Bar {
  const char *recorded, *shown;
  double Speeds::*limit;

  bool ours() const { return std::string_view(shown).starts_with("rung"); }
};
// Rung 5 is for a single query, and has another measure.
constexpr Bar bars[] = {{"0 naive", "rung 0, naive", &Speeds::floats},
                        {"1 fused", "rung 1, fused", &Speeds::floats},
                        {"2 shared tiles", "rung 2, shared tiles", &Speeds::floats},
                        {"3 tensor cores", "rung 3, tensor cores", &Speeds::mma},
                        {"4 swizzle, async", "rung 4, asynchronous", &Speeds::mma},
                        {"6 bulk copies", "rung 6, bulk copies", &Speeds::matrix},
                        {"7 warpgroups", "rung 7, warpgroups", &Speeds::matrix},
                        {"8 roles", "rung 8, roles", &Speeds::matrix},
                        {"9 overlapped", "rung 9, overlapped", &Speeds::matrix},
                        {"10 persistent", "rung 10, persistent", &Speeds::matrix},
                        {"cuBLAS, 3 steps", "cuBLAS, 3 steps", &Speeds::matrix},
                        {"PyTorch, flash", "PyTorch, flash", &Speeds::matrix},
                        {"PyTorch, cuDNN", "PyTorch, cuDNN", &Speeds::matrix}};
constexpr double left = 226, right = 500, top = 40, high = 26;
constexpr std::size_t tokens = 2048, width = 128;  // T and D, without a mask

Speeds speeds_in(const Json& record) {
  Speeds speeds;
  for (const Json& result : record.at("results")) {
    const std::string kind = result.at("kind");
    if (kind == "attention" && result.at("D") == width && result.at("T") == tokens &&
        result.at("causal") == false)
      speeds.of[result.at("rung")] = result.at("tflops");
    if (kind != "limits") continue;
    for (const auto& [name, limit] :
         {std::pair("float_tflops", &speeds.floats), std::pair("mma_tflops", &speeds.mma),
          std::pair("matrix_tflops", &speeds.matrix)})
      *limit = std::max(*limit, result.value(name, 0.0));
  }
  return speeds;
}

std::string short_number(double x) {
  return x >= 100 ? fmt::format("{:.0f}", x) : fmt::format("{:.3g}", x);
}

/// All bars in words, for who cannot see them.
std::string told(const Speeds& speeds) {
  std::string text;
  for (const Bar& bar : bars) {
    const auto found = speeds.of.find(bar.recorded);
    text +=
        fmt::format("{}: {}. ", bar.shown,
                    found == speeds.of.end() ? "not measured yet" : short_number(found->second));
  }
  return text + fmt::format("Limits: float32 products {}, mma.sync {}, bf16 products {}.",
                            short_number(speeds.floats), short_number(speeds.mma),
                            short_number(speeds.matrix));
}

/// The limit of some rows as a line, with its words in one of them.
void draw_limit(Figure& figure, double x, std::size_t first, std::size_t rows, std::size_t in,
                const std::string& words) {
  const double y = top + high * double(first), half = (left + right) / 2;
  figure.line({{x, y + 2}, {x, y + high * double(rows) - 2}}, {Tone::second, 2, true});
  figure.text({x < half ? x + 6 : x - 6, y + high * double(in) + 18}, words,
              {Tone::second, x < half ? Anchor::start : Anchor::end, 13});
}

void draw_bar(Figure& figure, const Scale& scale, const Bar& bar, const Speeds& speeds, double y) {
  const auto found = speeds.of.find(bar.recorded);
  const bool there = found != speeds.of.end();
  figure.text({162, y + 18}, bar.shown, {there ? Tone::ink : Tone::quiet, Anchor::end});
  if (!there)
    return figure.text({left + 6, y + 18}, "not measured yet", {.tone = Tone::quiet, .size = 13});
  figure.text({left - 10, y + 18}, short_number(found->second), {.anchor = Anchor::end});
  figure.box({left, y + 4, scale.at(found->second) - left, high - 8},
             bar.ours() ? Tone::first : Tone::quiet, 0.75);
}

std::string drawn(const Json& record) {
  const Speeds speeds = speeds_in(record);
  const double bottom = top + high * double(std::size(bars));
  const double most = 200 * std::ceil(std::max(speeds.matrix, 700.0) / 200);
  Axes axes{{0, most, left, right}, {0, 1, bottom, top}, {}, {}, "TFLOP/s"};
  for (double x = 0; x <= most; x += 200) axes.x_ticks.push_back({x, fmt::format("{:.0f}", x)});
  const std::string gpu = record.at("name");
  Figure figure(right + 30, bottom + 50, fmt::format("The ladder of GPU kernels on an {}", gpu),
                fmt::format("TFLOP/s for {} tokens, D = {}, without a mask. {}", tokens, width,
                            told(speeds)));
  figure.text({8, 20}, fmt::format("Speed on an {}", gpu), {.bold = true});
  draw_axes(figure, axes);
  for (std::size_t i = 0; i < std::size(bars); ++i)
    draw_bar(figure, axes.x, bars[i], speeds, top + high * double(i));
  // Each limit spans the rows whose products it bounds.
  const auto limit = [&](double Speeds::*of, std::size_t in, const std::string& words) {
    const auto has = [&](const Bar& bar) { return bar.limit == of; };
    const auto first = std::ranges::find_if(bars, has) - std::begin(bars);
    draw_limit(figure, axes.x.at(speeds.*of), std::size_t(first),
               std::size_t(std::ranges::count_if(bars, has)), in,
               fmt::format("{}: {}", words, short_number(speeds.*of)));
  };
  limit(&Speeds::floats, 1, "limit of float32 products");
  limit(&Speeds::mma, 0, "limit of mma.sync");
  limit(&Speeds::matrix, 5, "limit of bf16 products");
  return figure.svg();
}

}  // namespace

std::string figure_of_ladder(const std::filesystem::path& record) {
  const std::string text = read_text_file(record);
  try {
    return drawn(Json::parse(text));
  } catch (const Json::exception& error) {
    throw std::runtime_error(
        fmt::format("{}: no record of ./learn gpu: {}", record.string(), error.what()));
  }
}

}  // namespace t2t

#else

namespace t2t {

std::string figure_of_ladder(const std::filesystem::path&) {
  throw std::runtime_error(
      "--svg-ladder: the program was built without nlohmann-json (Debian: nlohmann-json3-dev)");
}

}  // namespace t2t

#endif
