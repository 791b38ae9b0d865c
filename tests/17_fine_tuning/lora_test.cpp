// What must be true of fine-tuning: only answers are learned, only the adapter learns, and its
// gradients are what the loss changes by.
#include "17_fine_tuning/lora.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "10_pretrained/model/tiny_model.hpp"
#include "13_training/cases.hpp"
#include "13_training/differences.hpp"
#include "17_fine_tuning/conversations.hpp"
#include "files/files.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"
#include "support/tried.hpp"

namespace t2t::lora_test {

using std::size_t;
using Bad = std::runtime_error;

static const std::vector<std::string> all_matrices = {"w_q",    "w_k",  "w_v",   "w_o",
                                                      "w_gate", "w_up", "w_down"};

static Config tiny() {
  return {.block = llama_style(32, 4, 2, 48), .L = 2, .V = 258, .T_max = 64, .tied = true};
}
static Model drawn() {
  Random random(5);
  return Model(tiny(), draw_model(tiny(), random));
}
static Batch some_batch(size_t B, size_t T) {
  Batch batch = make_batch(B, T);
  for (size_t i = 0; i < B * T; ++i) {
    batch.ids[i] = int(97 + i * i % 23);
    batch.targets[i] = i % 5 == 0 ? not_learned : int(97 + (i + 1) * (i + 1) % 23);
  }
  return batch;
}
static LoraOptions options(float rate = 0.01f) {
  return {.rank = 3,
          .alpha = 6,
          .matrices = all_matrices,
          .B = 2,
          .T = 12,
          .schedule = {rate, rate, 0, 100},
          .clip = 0,
          .seed = 4};
}
static bool same_bits(const Tensor<2>& a, const Tensor<2>& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
/// Weights as one list of matrices.
static std::vector<Tensor<2>> matrices_of(const Model& model) {
  std::vector<Tensor<2>> all;
  for_each_tensor(model.weights(), model.config(),
                  [&]<class Stored>(const TensorInfo& info, const Stored& tensor) {
                    if constexpr (std::is_same_v<Stored, Weight>)
                      if (info.size() > 0) all.push_back(tensor.floats());
                  });
  return all;
}

TEST_CASE("a new adapter changes nothing, and after the first step B alone has moved") {
  LoraTrainer trainer(drawn(), options());
  const Model old = drawn();
  const std::vector<Tensor<2>> was = matrices_of(old), is = matrices_of(trainer.model());
  for (size_t i = 0; i < was.size(); ++i) CHECK(same_bits(is[i], was[i]));
  const Adapter before = trainer.adapter();
  REQUIRE(before.changes.size() == 14);
  trainer.step_on(some_batch(2, 12));
  const Adapter after = trainer.adapter();
  for (size_t i = 0; i < 14; ++i) {
    CAPTURE(after.changes[i].weight);
    CHECK(same_bits(after.changes[i].a, before.changes[i].a));
    CHECK(xt::amax(xt::abs(before.changes[i].b))() == 0);
    CHECK(xt::amax(xt::abs(after.changes[i].b))() > 0.009f);
  }
}

/// The loss of a batch with the adapter in the model.
static double loss_with(const Adapter& adapter, const Batch& batch) {
  const Model model = with_adapter(drawn(), adapter);
  Gradients passes(tiny(), batch.B, batch.T);
  return passes.loss(model, batch) / double(count_learned(batch.targets));
}

TEST_CASE("the gradients of A and B are what the loss changes by, matrix by matrix") {
  // With eps far above a gradient's size, a step moves by rate·g/eps: the moves show the gradients.
  LoraOptions o = options(1);
  o.adamw = {.beta1 = 0, .beta2 = 0, .eps = 100, .decay = 0};
  LoraTrainer trainer(drawn(), o);
  const Batch batch = some_batch(2, 12);
  for (int n = 0; n < 3; ++n) trainer.step_on(batch);
  const Adapter before = trainer.adapter();
  trainer.step_on(batch);
  const Adapter after = trainer.adapter();
  for (size_t i = 0; i < before.changes.size(); ++i)
    for (Tensor<2> LowRank::*part : {&LowRank::a, &LowRank::b}) {
      CAPTURE(before.changes[i].weight);
      CAPTURE(part == &LowRank::a ? "A" : "B");
      const Tensor<2> g = 100 * (before.changes[i].*part - after.changes[i].*part);
      const double norm = std::sqrt(double(xt::sum(g * g)()));
      REQUIRE(norm > 0);
      // Moved along its gradient by h to either side, the loss changes by 2·h·|g|.
      const double h = part == &LowRank::a ? 0.5 : 0.05;
      const auto moved = [&](double by) {
        Adapter adapter = before;
        adapter.changes[i].*part += float(by / norm) * g;
        return loss_with(adapter, batch);
      };
      const double slope = (moved(h) - moved(-h)) / (2 * h);
      // Roundings of the loss, and of moves that are a few thousandths of what they are taken from.
      CHECK(std::abs(slope - norm) < 0.03 * norm + 4e-6 / h);
    }
}

TEST_CASE("the gradients of a step are clipped to the norm that is asked for") {
  // With eps so far above a gradient's size that their sum is eps, a move is in proportion to the
  // gradient, and half the gradient gives exactly half the move.
  LoraOptions o = options();
  o.adamw.eps = 0x1p30f;
  const Batch batch = some_batch(2, 12);
  LoraTrainer free(drawn(), o);
  const double norm = free.step_on(batch).gradient_norm;
  REQUIRE(norm > 0);
  o.clip = norm / 2;
  LoraTrainer clipped(drawn(), o);
  CHECK(clipped.step_on(batch).gradient_norm == norm);  // that before clipping
  const Adapter got = clipped.adapter(), want = free.adapter();
  for (size_t i = 0; i < want.changes.size(); ++i) {
    CAPTURE(want.changes[i].weight);
    CHECK(all_close(Tensor<2>(2 * got.changes[i].b), want.changes[i].b, 0));
  }
}

TEST_CASE("matrices that are not named stay as they are, bit by bit") {
  LoraOptions o = options();
  o.matrices = {"w_v", "w_down"};
  LoraTrainer trainer(drawn(), o);
  CHECK(trainer.parameters() == 2 * (3 * (32 + 16) + 3 * (48 + 32)));
  for (int n = 0; n < 3; ++n) trainer.step_on(some_batch(2, 12));
  const Model old = drawn();
  for (size_t l = 0; l < 2; ++l) {
    const BlockWeights &is = trainer.model().weights().blocks[l], &was = old.weights().blocks[l];
    CHECK(same_bits(is.w_q.floats(), was.w_q.floats()));
    CHECK(same_bits(is.feed_forward.w_up.floats(), was.feed_forward.w_up.floats()));
    CHECK_FALSE(same_bits(is.w_v.floats(), was.w_v.floats()));
    CHECK_FALSE(same_bits(is.feed_forward.w_down.floats(), was.feed_forward.w_down.floats()));
    CHECK(std::ranges::equal(is.attention_norm.gain, was.attention_norm.gain));
  }
  CHECK(same_bits(trainer.model().weights().embedding.floats(), old.weights().embedding.floats()));
}

TEST_CASE("the adapter, added to the old model, is the model that was trained") {
  LoraTrainer trainer(drawn(), options());
  for (int n = 0; n < 3; ++n) trainer.step_on(some_batch(2, 12));
  const Model model = with_adapter(drawn(), trainer.adapter());
  const std::vector<Tensor<2>> want = matrices_of(trainer.model()), got = matrices_of(model);
  // Each number is a sum of 1 + r products, below 4 together, in whatever order.
  const double bound = rounding(1 + options().rank, 4);
  for (size_t i = 0; i < want.size(); ++i) CHECK(all_close(got[i], want[i], bound));
}

TEST_CASE("gradients that are not wanted are not made; the others are the same, bit by bit") {
  const Model model = drawn();
  const Batch batch = some_batch(2, 12);
  Gradients passes(tiny(), 2, 12);
  ModelWeights all = zeros_of(tiny());
  const auto learned = [](const TensorInfo& info) { return info.name == "w_k"; };
  ModelWeights some = zeros_of(tiny(), learned);
  CHECK(passes.add(model, batch, 1, all) == passes.add(model, batch, 1, some));
  for (size_t l = 0; l < 2; ++l) {
    CHECK(same_bits(some.blocks[l].w_k.floats(), all.blocks[l].w_k.floats()));
    CHECK(some.blocks[l].w_q.size() == 0);
    CHECK(
        std::ranges::equal(some.blocks[l].attention_norm.gain, all.blocks[l].attention_norm.gain));
  }
  CHECK(some.embedding.size() == 0);
}

TEST_CASE("step after step the loss falls, and it is the mean over what is to be learned") {
  LoraTrainer trainer(drawn(), options());
  const Batch batch = some_batch(2, 12);
  const double before = trainer.loss_of(batch);
  CHECK(std::abs(before - loss_with(trainer.adapter(), batch)) < 1e-12);
  CHECK(std::abs(trainer.step_on(batch).loss - before) < 1e-12);
  double last = before;
  for (int n = 0; n < 20; ++n) {
    const double loss = trainer.step_on(batch).loss;
    CHECK(loss < last);
    last = loss;
  }
}

TEST_CASE("adapters that can't be made are refused") {
  const auto refused = [](const std::function<void(LoraOptions&)>& change) {
    LoraOptions o = options();
    change(o);
    LoraTrainer(drawn(), o);
  };
  REFUSES(refused([](LoraOptions& o) { o.rank = 0; }),
          "rank of the adapter: wanted 1 to 32, the smaller side of blk.0.attn_q.weight, got 0");
  REFUSES(refused([](LoraOptions& o) { o.rank = 17; }),
          "rank of the adapter: wanted 1 to 16, the smaller side of blk.0.attn_k.weight, got 17");
  REFUSES(refused([](LoraOptions& o) { o.matrices = {}; }),
          "matrices to adapt: wanted at least one");
  for (const char* name : {"w_x", "embedding", "attention_norm.gain"})
    REFUSES(
        refused([&](LoraOptions& o) { o.matrices.push_back(name); }),
        fmt::format("matrices to adapt: wanted names such as w_q, w_v or w_down, got {}", name));
  LoraTrainer trainer(drawn(), options());
  Batch batch = some_batch(2, 12);
  std::ranges::fill(batch.targets, not_learned);
  REFUSES(trainer.step_on(batch), "targets that are to be learned: wanted at least 1, got 0");
  REFUSES(trainer.loss_of(batch), "targets that are to be learned: wanted at least 1, got 0");
}

// Conversations.

TEST_CASE("questions and answers are read, and what is something else is refused by its line") {
  const Folder folder;
  const std::filesystem::path path = folder.path / "q.txt";
  const auto read = [&](const std::string& text) {
    write_file(path, text);
    return read_questions(path);
  };
  CHECK(read("Q: x\r\nA: y\r\n").at(0).answer == "y");
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    std::string text;
    for (const char* line : {"# a comment", "", "Q: What?", "A: That: so.", "", "Q: é?", "A: Yes."})
      text += line + end;
    std::vector<QuestionAnswer> got;
    CHECK_NOTHROW(got = read(text));
    REQUIRE(got.size() == 2);
    CHECK(got[0].question == "What?");
    CHECK(got[0].answer == "That: so.");
    CHECK(got[1].question == "é?");
    CHECK(got[1].answer == "Yes.");
  }
  const std::string begin = path.string() + ": line ";
  REFUSES_AS(read("A: x\n"), begin + "1: wanted a question, \"Q: \"", Bad);
  REFUSES_AS(read("\nQ: x\nQ: y\n"), begin + "3: wanted the answer, \"A: \"", Bad);
  REFUSES_AS(read("Q: x\n"), begin + "2: wanted the answer, \"A: \"", Bad);
  REFUSES_AS(read("Q: x\nA: y\nA: z\n"), begin + "3: wanted a question, \"Q: \"", Bad);
  REFUSES_AS(read("Q: x\nA: \n"), begin + "2: wanted a text after the colon", Bad);
  REFUSES_AS(read("Q: x\nhello\n"),
             begin + "2: wanted a line that begins with \"Q: \", \"A: \" or #, or an empty one",
             Bad);
  REFUSES_AS(read("# nothing\n"), begin + "2: wanted at least one question", Bad);
  CHECK_THROWS_AS(read("Q: \xff\nA: y\n"), Bad);
}

TEST_CASE("by hand: a conversation's tokens, of which the answer and its end are learned") {
  const Bpe bpe(tiny_tokenizer(258));
  const std::vector<Lesson> lessons = lessons_of({{"a?", "b!"}, {"c", "d"}}, bpe, "s");
  const std::string text = "?system\ns?\n?user\na??\n?assistant\nb!";  // ? for the marks
  CHECK(lessons[0].ids.size() == text.size() + 1);
  CHECK(lessons[0].given == text.size() - 2);
  CHECK(lessons[0].ids.back() == 257);
  CHECK(lessons[0].ids[lessons[0].given] == 'b');
  CHECK(longest(lessons) == text.size());
  expect_lengths("q.txt", lessons, text.size());
  REFUSES_AS(expect_lengths("q.txt", lessons, text.size() - 1),
             fmt::format("q.txt: question 1: wanted at most {} tokens with its prompt and answer, "
                         "got {}",
                         text.size(), text.size() + 1),
             std::runtime_error);

  Batch batch = make_batch(3, text.size() + 2);
  fill(batch, lessons, 1, false);
  const size_t T = batch.T, given = lessons[1].given;
  for (size_t t = 0; t < T; ++t) {
    const Ids& ids = lessons[1].ids;
    CHECK(batch.ids[t] == (t + 1 < ids.size() ? ids[t] : 0));
    CHECK(batch.targets[t] == (t + 1 >= given && t + 1 < ids.size() ? ids[t + 1] : not_learned));
  }
  CHECK(count_learned(batch.targets) ==
        3 + 2 + 2);  // b!, d, and their ends; after d comes b! again
  CHECK(batch.ids[2 * T + given - 1] == lessons[1].ids[given - 1]);
  fill(batch, lessons, 1, true);
  CHECK(count_learned(batch.targets) == 2);
  Batch small = make_batch(1, text.size() - 1);
  REFUSES(fill(small, lessons, 0),
          fmt::format("a lesson: wanted at most {} tokens, got {}", text.size(), text.size() + 1));
}

}  // namespace t2t::lora_test
