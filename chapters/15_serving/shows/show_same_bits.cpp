#include "15_serving/shows/show_same_bits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "15_serving/engine/model_runner.hpp"
#include "15_serving/products/batch_invariant.hpp"
#include "15_serving/products/matrices_as.hpp"
#include "program/print.hpp"
#include "random.hpp"

namespace t2t {

static constexpr std::size_t length = 301, V = 512;

static Config small_config() {
  return {.block = llama_style(192, 6, 2, 512), .L = 4, .V = V, .T_max = 512};
}

/// The same random model, with its matrices in another form.
static Model model_of(const std::function<Weight(Tensor<2>)>& form, std::size_t seed) {
  const Config config = small_config();
  Random random(seed);
  return Model(config, matrices_as(form, draw_model(config, random), config));
}

/// How a sequence is read: `chunk` tokens in each call, and `beside` tokens of another sequence
/// beside them.
struct Cut {
  std::size_t chunk, beside;
};

/// The logits of the sequence's last token, [V]. With pages, or with chapter 08's contiguous
/// caches.
static Tensor<1> last_logits(const Model& model, const std::vector<int>& ids, const Cut& cut,
                             bool pages) {
  const EngineOptions options{.pages = 64, .page_size = 16, .sequences = 2, .budget = 2 * length};
  const ModelRunner runner = pages ? model_runner(model, options) : ModelRunner{};
  ModelState state(model.config(), length, {.chunk = 2 * length, .sequences = 2});
  std::vector<std::size_t> own, other;
  for (std::size_t i = 0; i < 32; ++i) own.push_back(i), other.push_back(32 + i);
  Tensor<2> logits = empty(1, V);
  for (std::size_t t = 0; t < ids.size(); t += cut.chunk) {
    const std::size_t count = std::min(cut.chunk, ids.size() - t);
    std::vector<MoreTokens> more = {{0, std::span(ids).subspan(t, count)}};
    if (cut.beside > 0) more.push_back({1, std::span(ids).first(cut.beside), false});
    if (pages) {
      std::vector<Chunk> chunks = {{0, t, more[0].ids, own, true}};
      if (cut.beside > 0) chunks.push_back({1, 0, more[1].ids, other, false});
      runner.run(chunks, logits);
    } else {
      truncate(state, 0, 1);
      forward(model, state, more, logits);
    }
  }
  Tensor<1> last = empty(V);
  std::ranges::copy(row(logits, 0), last.begin());
  return last;
}

/// How many logits of two rows differ, and by how much at most.
struct LogitChanges {
  std::size_t count = 0;
  float most = 0;
};
static LogitChanges difference(const Tensor<1>& a, const Tensor<1>& b) {
  LogitChanges found;
  for (std::size_t v = 0; v < V; ++v) {
    found.count += a(v) != b(v);
    found.most = std::max(found.most, std::abs(a(v) - b(v)));
  }
  return found;
}
/// In words that are the same on every machine, since the numbers are not.
static std::string in_words(const LogitChanges& found) {
  if (found.count == 0) return "none";
  const std::string many = found.count > V * 8 / 10 ? "nearly all" : "some";
  return many + (found.most < 1e-4f ? ", by less than 0.0001" : ", by more than 0.0001");
}

void show_same_bits(const Program& program) {
  print_section("Which logits change when a prompt is read in chunks");
  std::vector<int> ids;
  for (std::size_t t = 0; t < length; ++t) ids.push_back(int((t * t + 7 * t) % V));
  const auto as_they_are = [](Tensor<2> floats) { return Weight(std::move(floats)); };
  const auto packed = [](const Tensor<2>& x) { return packed_floats(TensorType::q8_0, x); };
  const Model floats = model_of(as_they_are, program.seed()),
              fixed_order = model_of(batch_invariant, program.seed()),
              q8 = model_of(packed, program.seed());
  const auto change = [&](const Model& model, bool pages, const Cut& cut) {
    return difference(last_logits(model, ids, cut, pages),
                      last_logits(model, ids, {length, 0}, pages));
  };
  Table table({"weights", "keys and values in", "logits that change if read one token at a time"});
  const auto add = [&](const std::string& name, const Model& model, bool pages) {
    table.add({name, pages ? "pages" : "contiguous cache", in_words(change(model, pages, {1, 0}))});
  };
  add("floats", floats, false), add("floats", floats, true);
  add("floats, batch-invariant", fixed_order, true);
  add("Q8_0", q8, false), add("Q8_0", q8, true);
  table.print();
  fmt::print("\n");
  std::size_t others = 0, compared = 0;
  for (const Model* model : {&fixed_order, &q8})
    for (const Cut& cut : {Cut{7, 0}, {64, 0}, {length, 50}})
      others += change(*model, true, cut).count, compared += V;
  print_paragraph(fmt::format(
      "A model of {1} layers with random weights reads a prompt of {0} tokens. The {2} logits of "
      "its last token are compared with those of one call with the whole prompt. The same test "
      "with pages was made in three more ways: in calls of 7 tokens, in calls of 64, and in one "
      "call together with 50 tokens of another sequence. Of these {4} logits (batch-invariant "
      "floats and Q8_0), {3} change.",
      length, small_config().L, V, others, with_commas(compared)));
}

}  // namespace t2t
