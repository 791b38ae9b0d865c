#include "10_pretrained/check/trace_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <stdexcept>
#include <tuple>

#include "files/npy.hpp"
#include "shapes.hpp"

namespace t2t {

/// "layer_3_q": the name of a part's file, without its ending.
static std::string file_name(Part part, std::size_t layer) {
  std::string name = trace_name(part, layer);
  std::ranges::replace(name, ' ', '_');
  return name;
}

Trace trace_to(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  return [folder](Part part, std::size_t layer, ConstMatrix value) {
    save_npy(folder / (file_name(part, layer) + ".npy"), copy_of(value));
  };
}

/// The part and layer that a file's name tells.
struct Named {
  Part part;
  std::size_t layer;
};
static std::optional<Named> named(std::string_view name) {
  std::size_t layer = 0;
  const std::string_view head = "layer_";
  if (name.starts_with(head))
    std::from_chars(name.data() + head.size(), name.data() + name.size(), layer);
  for (std::size_t i = 0; i < part_count; ++i)
    if (name == file_name(Part(i), layer)) return Named{Part(i), layer};
  return std::nullopt;
}

/// The place of a name in a forward pass: the ids, the embedding, the layers, the rest of the
/// model; other names last.
static std::tuple<int, std::size_t, std::size_t> place_of(std::string_view name) {
  if (name == "ids") return {0, 0, 0};
  const std::optional<Named> place = named(name);
  if (!place) return {4, 0, 0};
  const int stage = place->part == Part::embedding ? 1 : is_of_block(place->part) ? 2 : 3;
  return {stage, place->layer, std::size_t(place->part)};
}

void sort_by_order(std::vector<std::string>& names) {
  std::ranges::sort(names, {},
                    [](const std::string& name) { return std::pair(place_of(name), name); });
}

static std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::error_code error;
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.is_regular_file() && entry.path().extension() == ".npy" &&
        entry.path().stem() != "ids")
      names.insert(entry.path().stem().string());
  if (error) throw std::runtime_error(folder.string() + ": " + error.message());
  if (names.empty()) throw std::runtime_error(folder.string() + ": it contains no .npy file");
  return names;
}

/// |a − b| / |a|, in double. A NaN in either gives NaN.
static double distance_of(ConstRow a, ConstRow b) {
  double apart = 0, size = 0;
  for (std::size_t c = 0; c < a.size(); ++c) {
    apart += (double(a[c]) - b[c]) * (double(a[c]) - b[c]);
    size += double(a[c]) * a[c];
  }
  return apart == 0 ? 0 : std::sqrt(apart / size);
}

/// The first token that differs too much. worst becomes the largest distance of the others.
static std::optional<Parting> parting_of(const std::string& name, const NpyContent<float>& a,
                                         const NpyContent<float>& b, double tolerance,
                                         double& worst) {
  if (a.shape != b.shape)
    return Parting{
        name, "shapes " + shape_text(a.shape) + " and " + shape_text(b.shape), 0, 0, 0, 0, 0};
  const std::size_t cols = a.shape.empty() ? 1 : a.shape.back();
  for (std::size_t t = 0; cols > 0 && t < a.values.size() / cols; ++t) {
    const ConstRow a_t(&a.values[t * cols], cols), b_t(&b.values[t * cols], cols);
    const double distance = distance_of(a_t, b_t);
    if (distance <= tolerance) {
      worst = std::max(worst, distance);
      continue;
    }
    // A NaN counts as the largest difference.
    std::size_t furthest = 0;
    const auto apart = [&](std::size_t c) { return std::abs(a_t[c] - b_t[c]); };
    for (std::size_t c = 1; c < cols && !std::isnan(apart(furthest)); ++c)
      if (!(apart(c) <= apart(furthest))) furthest = c;
    return Parting{name, "", t, furthest, a_t[furthest], b_t[furthest], distance};
  }
  return std::nullopt;
}

Comparison compare_traces(const std::filesystem::path& a, const std::filesystem::path& b,
                          double tolerance) {
  expect(tolerance > 0, "tolerance", "above 0", tolerance);
  const std::set<std::string> in_a = names_in(a), in_b = names_in(b);
  Comparison result;
  std::vector<std::string> common;
  std::ranges::set_intersection(in_a, in_b, std::back_inserter(common));
  std::ranges::set_symmetric_difference(in_a, in_b, std::back_inserter(result.only_in_one));
  if (common.empty())
    throw std::runtime_error(
        fmt::format("{} and {}: no part of the same name", a.string(), b.string()));
  sort_by_order(common);
  sort_by_order(result.only_in_one);
  for (const std::string& name : common) {
    result.compared.push_back(name);
    result.parting = parting_of(name, load_npy_floats(a / (name + ".npy")),
                                load_npy_floats(b / (name + ".npy")), tolerance, result.worst);
    if (result.parting) break;
  }
  return result;
}

/// The usual causes when a part differs.
static const char* causes_at(Part part) {
  switch (part) {
    case Part::embedding:
      return "other ids (another tokenizer, a token in front), or the table's rows misread";
    case Part::attention_norm:
      return "eps (its value, or added outside the root), gains read as 1 + gain, or a mean "
             "subtracted, which RMSNorm does not do";
    case Part::q:
      return "w_q: transposed, dequantized wrongly, or its rows in the order of the other pairing";
    case Part::k:
      return "w_k: transposed, dequantized wrongly, or its rows in the order of the other pairing";
    case Part::v:
      return "w_v: transposed, dequantized wrongly, or exchanged with w_k";
    case Part::q_rotated:
      return "RoPE: the other pairing, another theta, scaled angles, positions off by one";
    case Part::k_rotated:
      return "RoPE on k: left out, or at other positions than q's";
    case Part::heads:
      return "the mask, the scale 1/√D, which group a head reads, values rotated by RoPE too";
    case Part::attention:
      return "w_o: transposed, or the heads joined in another order";
    case Part::post_attention_norm:
      return "the norm after attention: left out, its gains read as 1 + gain, or put after the sum";
    case Part::x_plus_attention:
      return "the residual sum: left out, or added to the norm instead of to x";
    case Part::feed_forward_norm:
      return "the gains of the first norm used for the second, or its eps";
    case Part::gate:
      return "w_gate: exchanged with w_up, or transposed";
    case Part::up:
      return "w_up: exchanged with w_gate, or transposed";
    case Part::hidden:
      return "the activation (SiLU, not GELU or sigmoid), or gate and up exchanged";
    case Part::feed_forward:
      return "w_down: transposed or dequantized wrongly";
    case Part::post_feed_forward_norm:
      return "the norm after the feed-forward network: another norm's gains, or put after the sum";
    case Part::x_plus_feed_forward:
      return "any part of this layer that was not compared; else the residual sum";
    case Part::final_norm:
      return "the final norm's gains or eps";
    case Part::logits:
      return "the head, which is the embedding only when tied";
  }
  return "";
}

std::string usual_causes(std::string_view name, bool first_token_agrees) {
  const std::optional<Named> place = named(name);
  if (!place) return "unknown: the name is not a part of a model";
  std::string causes = causes_at(place->part);
  if (is_of_block(place->part) && place->layer > 0)
    causes +=
        ". Layers before it agree: look for what differs between layers, such as weights "
        "read under another layer's name";
  if (is_of_block(place->part) && first_token_agrees)
    causes += ". Token 0 agrees: look for what depends on positions or on other tokens";
  return causes;
}

}  // namespace t2t
