// What must be true of the rung by which a model's prompts attend; run on the stand-in, and on a
// GPU where one is.
#include "11_flash_attention/kernels/best_rung.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "09_language_model/language_model.hpp"
#include "11_flash_attention/device_models.hpp"
#include "11_flash_attention/kernels/model/gpu_state.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::best_rung_test {

using namespace device_models;
using std::size_t;

#if defined(__SANITIZE_THREAD__)  // the race detector is slow: one card for each rung
static const std::vector<std::string> cards = {"sm_80", "sm_90"};
static const std::vector<size_t> widths = {64}, chunks = {130};
#else
static const std::vector<std::string> cards = {"sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};
static const std::vector<size_t> widths = {64, 128}, chunks = {200, 130};
#endif

/// The stand-in's card, as long as this lives.
class OnCard {
 public:
  explicit OnCard(const std::string& card) {
    if (const char* set = std::getenv("T2T_CARD")) before_ = set;
    setenv("T2T_CARD", card.c_str(), 1);
  }
  ~OnCard() { setenv("T2T_CARD", before_.c_str(), 1); }
  OnCard(const OnCard&) = delete;
  OnCard& operator=(const OnCard&) = delete;

 private:
  std::string before_ = "sm_90";
};

/// Runs work on each of the stand-in's cards, or on the GPU that is here.
template <class Work>
static void on_each_card(const Work& work) {
  if (has_gpu()) return work();
  for (const std::string& card : cards) {
    CAPTURE(card);
    const OnCard here(card);
    work();
  }
}

TEST_CASE("the best rung: 10 on Hopper, and 4 on all other GPUs") {
  for (const int capability : {80, 86, 87, 89, 100, 103, 110, 120, 121}) {
    CAPTURE(capability);
    CHECK(std::string(best_rung(capability).name) == "4 (swizzle, async)");
  }
  CHECK(best_rung_text(90) ==
        "prompts attend by rung 10 (persistent), the best for compute capability 9.0");
  CHECK(best_rung_text(120) ==
        "prompts attend by rung 4 (swizzle, async), the best for compute capability 12.0");
  REFUSES(best_rung(75), "compute capability: wanted 8.0 or newer, got 7.5");
}

/// A tile holds 128 queries in rung 4. In rung 10 it holds 192 at D = 64.
static Model model_with(size_t D) {
  Config config = config_of(Pairing::halves, true);
  config.block.H = 2, config.block.G = 1, config.block.D = D, config.L = 1;
  return model_of(config);
}

TEST_CASE("prompts on each card: the formula's logits, whole and in chunks") {
  for (const size_t D : widths) {
    CAPTURE(D);
    const Model model = model_with(D);
    const Ids ids = some_ids(200);
    const Tensor<2> want = language_model(ids, model);
    const double within = bound(model, want);
    on_each_card([&] {
      for (const size_t chunk : chunks) {
        CAPTURE(chunk);  // the second chunk begins inside of a tile of keys
        ModelState state = gpu_state(model, 200, {.chunk = chunk});
        Tensor<2> logits = empty(ids.size(), model.config().V);
        forward_all(model, state, ids, logits);
        CHECK(all_close(logits, want, within));
      }
    });
  }
}

TEST_CASE("two prompts in a chunk on each card: what each gives alone") {
  const Model model = model_with(64);
  const Ids a = some_ids(20), b = some_ids(11, 5);
  const Tensor<2> want_a = language_model(a, model), want_b = language_model(b, model);
  on_each_card([&] {
    ModelState state = gpu_state(model, 24, {.chunk = 31, .sequences = 2});
    Tensor<2> logits = empty(a.size() + b.size(), model.config().V);
    forward(model, state, std::vector<MoreTokens>{{1, b, b.size()}, {0, a, a.size()}}, logits);
    const ConstMatrix got(logits);
    CHECK(all_close(copy_of(got.rows_from(0, b.size())), want_b, bound(model, want_b)));
    CHECK(all_close(copy_of(got.rows_from(b.size(), a.size())), want_a, bound(model, want_a)));
  });
}

}  // namespace t2t::best_rung_test
