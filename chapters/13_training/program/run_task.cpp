#include "13_training/program/run_task.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <stdexcept>
#include <utility>
#include <vector>

#include "09_language_model/accounts/accounts.hpp"
#include "09_language_model/generate.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "13_training/shows/show_cost.hpp"
#include "13_training/text/passages.hpp"
#include "13_training/text/train_bpe.hpp"
#include "13_training/trainer/held_folder.hpp"
#include "files/files.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "program/progress.hpp"
#include "program/stop_asked.hpp"
#include "shapes.hpp"
#include "timing/measure.hpp"

namespace t2t {

void add_flags(Program& program, RunFlags& flags) {
  Sizes& s = flags.sizes;
  TrainingOptions& o = flags.options;
  program.output("run", flags.run,
                 "train a model in this new folder, which will hold the whole run",
                 NamedFile::filled);
  program.output("resume", flags.resume, "resume the run in this folder", NamedFile::filled);
  add_flags(program, flags.text);
  program.size("vocabulary", flags.vocabulary,
               "V: learn a vocabulary of this many tokens from the text; without it, bytes", 258);
  program.size("width", s.C, "C, width of the residual stream");
  program.size("layers", s.L, "L, number of blocks");
  program.size("heads", s.H, "H, query heads; divides C");
  program.size("groups", s.G, "G, key and value heads; divides H");
  program.size("ffn", s.F, "F, width of the feed-forward network; default: 8·C/3");
  program.size("context", s.T_max, "T, tokens of a window; also the trained model's T_max");
  program.yes("own-head", flags.own_head, "give the head a separate matrix");
  program.size("batch", o.B, "B, windows whose gradients are computed at once");
  program.size("parts", o.parts, "parts of a step's batch: a step sees B·parts windows");
  program.size("steps", o.schedule.steps, "steps to train");
  program.number("rate", o.schedule.peak, "highest learning rate");
  program.number("floor", o.schedule.floor, "learning rate at the end");
  program.size("warmup", o.schedule.warmup, "steps in which the rate grows from 0", 0);
  program.number("decay", o.adamw.decay, "weight decay of matrices and tables");
  program.number("dropout", o.dropout,
                 "share of each sublayer's result that is dropped in training");
  program.size("every", flags.every, "steps from one checkpoint to the next; --resume: as before");
}

void expect_flags(const Program& program, const RunFlags& flags) {
  const auto positive = [](const char* name, float value, bool or_zero) {
    expect((value > 0 || (or_zero && value == 0)) && value < 1e9f, name,
           or_zero ? "0 or more, and below 1e9" : "more than 0, and below 1e9", value);
  };
  positive("--rate", flags.options.schedule.peak, false);
  positive("--floor", flags.options.schedule.floor, true);
  positive("--decay", flags.options.adamw.decay, true);
  expect(flags.options.schedule.steps <= 1'000'000'000, "--steps", "at most 1,000,000,000",
         flags.options.schedule.steps);
  expect(program.seed() <= 1'000'000'000, "--seed", "at most 1,000,000,000", program.seed());
}

/// A bar, the loss, the speed and the remaining time.
static void tell_progress(const Trainer& trainer, const StepReport& step, double seconds_a_step) {
  const TrainingOptions& o = trainer.options();
  const std::size_t steps = o.schedule.steps;
  show_progress(fmt::format("{}  loss {:.3f}  {:.0f} tokens/s  {} left ", steps_done(step.n, steps),
                            step.loss, double(o.B * o.T * o.parts) / seconds_a_step,
                            duration_text(seconds_a_step * double(steps - step.n))));
}

/// A short sample of what the model writes by now.
static std::string sample_of(const Model& model, const Bpe& bpe, std::uint64_t seed) {
  constexpr std::size_t most = 60;
  const std::vector<int> prompt = bpe.encode("The ");
  ModelState state(model.config(), std::min(model.config().T_max, prompt.size() + most));
  Random random(seed);
  const Generation generation{.most = state.S - prompt.size(), .sampling = {.temperature = 0.7f}};
  return "The " + bpe.said(generate(model, state, prompt, generation, random));
}

static void tell_point(const LossPoint& point, const Trainer& trainer, const Bpe& bpe) {
  show_progress("");
  fmt::print("  step {:5}  loss {:.3f}  held out {:.3f}  |gradient| {:.2f}  rate {:.1e}\n",
             point.step.n, point.step.loss, point.held_out, point.step.gradient_norm,
             point.step.rate);
  print_paragraph("  " + visible(sample_of(trainer.model(), bpe, trainer.options().seed)));
  std::fflush(stdout);
}

/// Trains to the last step, or until somebody asks for an end, which the caller has begun to note.
/// A checkpoint is written every so many steps and at the end. The held-out loss is measured every
/// so many steps only, so that a stop between them leaves no trace in the curve.
static int train(Trainer& trainer, const RunFolder& folder, const BpeTables& tokenizer,
                 std::span<const int> held_out, LossCurve curve, const RunRecord& record) {
  using Clock = std::chrono::steady_clock;
  expect(held_out.size() >= 2, "the held-out text", "at least 2 tokens", held_out.size());
  const Bpe bpe(tokenizer);
  const std::size_t steps = trainer.options().schedule.steps;
  const Clock::time_point began = Clock::now();
  const std::size_t first = trainer.steps_done();
  bool ended = false;  // asked for once a step, after which the run is saved
  // [loop]
  while (trainer.steps_done() < steps && !ended) {
    curve.push_back({trainer.step()});
    LossPoint& point = curve.back();
    const std::size_t n = point.step.n;
    tell_progress(trainer, point.step, seconds_since(began) / double(n - first));
    ended = StopAsked::asked();
    const bool due = n % record.every == 0 || n == steps;
    if (due) point.held_out = trainer.loss_of(held_out, 64);
    if (due || ended) save_run(folder, trainer, tokenizer, curve, record);
    if (due) tell_point(point, trainer, bpe);
  }
  // [/loop]
  show_progress("");
  if (!curve.empty()) fmt::print("\n{}\n", drawing_of(curve, 64, 10));
  const bool done = trainer.steps_done() >= steps;
  print_paragraph(done ? fmt::format("Done. ./learn run 10 --model {} --prompt \"The model\" "
                                     "continues a text with it; the curve is in {}.",
                                     folder.model().string(), (folder.path / "loss.svg").string())
                       : fmt::format("Stopped at step {} of {}. --resume {} continues from there.",
                                     trainer.steps_done(), steps, folder.path.string()));
  return 0;
}

/// The sizes of the flags, for a vocabulary of V tokens.
static Config config_of(const RunFlags& flags, std::size_t V) {
  Sizes sizes = flags.sizes;
  sizes.V = V;
  Config config = resized(preset("foundry-small"), sizes);
  config.tied = !flags.own_head;
  expect_config(config);
  return config;
}

static void tell_run(const Trainer& trainer, std::size_t train_ids, std::size_t held_out_ids) {
  const Config& c = trainer.model().config();
  print_paragraph(fmt::format(
      "{} parameters (C = {}, L = {}, H = {}, G = {}, F = {}, V = {}), {} tokens to learn from, {} "
      "held out. A step sees {} windows of {}; an epoch is {:.0f} steps.",
      with_commas(total(count_parameters(c))), c.block.C, c.L, c.block.H, c.block.G, c.block.F, c.V,
      with_commas(train_ids), with_commas(held_out_ids),
      trainer.options().B * trainer.options().parts, trainer.options().T,
      std::ceil(double(train_ids) /
                double(trainer.options().B * trainer.options().parts * trainer.options().T))));
  show_memory(trainer);
  fmt::print("\n");
}

static void expect_training_memory(const Config& config, std::size_t B, std::size_t T) {
  const TrainingMemory memory = training_memory(config, B, T, sizeof(float));
  expect_memory(memory.weights + memory.gradients + memory.optimizer + memory.activations,
                "the model with all that training stores");
}

static int start_run(const Program& program, RunFlags flags) {
  const RunFolder folder{flags.run};
  const std::size_t V = flags.vocabulary > 0 ? flags.vocabulary : byte_tokenizer().tokens.size();
  expect_training_memory(config_of(flags, V), flags.options.B, flags.sizes.T_max);
  HeldFolder held = HeldFolder::for_new_run(folder);

  const SplitText split = split_by_passage(text_of(flags.text));
  const BpeTables tokenizer =
      flags.vocabulary == 0 ? byte_tokenizer() : train_bpe(split.train, {flags.vocabulary});
  const Bpe bpe(tokenizer);
  const Config config = config_of(flags, bpe.size());
  save_ids(folder.train(), bpe.encode(split.train));
  save_ids(folder.held_out(), bpe.encode(split.held_out));
  const MappedIds train_ids(folder.train(), config.V), held_out(folder.held_out(), config.V);

  Random random(program.seed());
  flags.options.T = config.T_max;
  flags.options.seed = program.seed();
  Trainer trainer(Model(config, draw_model(config, random)), flags.options, train_ids.ids());
  tell_run(trainer, train_ids.ids().size(), held_out.ids().size());
  const RunRecord record = record_of(train_ids.ids(), held_out.ids(), flags.every);
  const StopAsked stop{SIGINT, SIGTERM};  // from here on there is a run to end well
  save_run(folder, trainer, tokenizer, {}, record);
  held.keep();
  return train(trainer, folder, tokenizer, held_out.ids(), {}, record);
}

static int resume_run(const Program& program, const RunFlags& flags) {
  const RunFolder folder{flags.resume};
  const HeldFolder held = HeldFolder::for_old_run(folder);
  const GgufFile model = GgufFile::open(folder.model()), state = GgufFile::open(folder.state());
  RunRecord record = read_record(folder, model, state);
  if (program.given("every")) record.every = flags.every;
  const Config config = read_config(model);
  const TrainingOptions options = read_options(state);
  expect_training_memory(config, options.B, options.T);
  const BpeTables tokenizer = read_tables(model);
  const MappedIds train_ids(folder.train(), config.V), held_out(folder.held_out(), config.V);
  Trainer trainer(Model(config, read_weights(model, config)), options, train_ids.ids());
  LossCurve curve = go_on(folder, model, state, tokenizer, trainer);
  tell_run(trainer, train_ids.ids().size(), held_out.ids().size());
  print_paragraph(fmt::format("Continuing after step {}.", trainer.steps_done()));
  const StopAsked stop{SIGINT, SIGTERM};
  return train(trainer, folder, tokenizer, held_out.ids(), std::move(curve), record);
}

std::vector<Task> run_tasks(const Program& program, const RunFlags& flags) {
  return {{"run",
           {"file",  "folder",  "vocabulary", "width", "layers",  "heads",   "groups",
            "ffn",   "steps",   "rate",       "floor", "warmup",  "decay",   "parts",
            "batch", "dropout", "every",      "seed",  "context", "own-head"},
           [&] { return start_run(program, flags); }},
          {"resume", {"every"}, [&] { return resume_run(program, flags); }}};
}

}  // namespace t2t
