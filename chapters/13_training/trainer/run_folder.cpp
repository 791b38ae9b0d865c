#include "13_training/trainer/run_folder.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include "10_pretrained/model/architecture.hpp"
#include "10_pretrained/model/save_model.hpp"
#include "10_pretrained/tokenizer/byte_alphabet.hpp"
#include "13_training/trainer/checksum.hpp"
#include "files/files.hpp"

namespace t2t {

/// A model's name, which tells a run the model's step.
static std::string name_after(std::size_t steps) {
  return fmt::format("trained for {} steps", steps);
}

BpeTables byte_tokenizer() {
  BpeTables tables;
  tables.name = "bytes", tables.pre_tokenizer = "gpt-2";
  tables.tokens = byte_tokens();
  tables.kinds.assign(256, TokenKind::normal);
  tables.tokens.push_back("<|endoftext|>");
  tables.kinds.push_back(TokenKind::control);
  tables.eos = 256;
  return tables;
}

MappedIds::MappedIds(const std::filesystem::path& file, std::size_t V) : file_(file) {
  const std::span<const std::uint8_t> bytes = file_.bytes();
  if (bytes.size() % sizeof(int) != 0)
    throw std::runtime_error(
        fmt::format("{}: wanted integers of 4 bytes, got {} bytes", file.string(), bytes.size()));
  ids_ = {reinterpret_cast<const int*>(bytes.data()), bytes.size() / sizeof(int)};
  for (std::size_t i = 0; i < ids_.size(); ++i)
    if (ids_[i] < 0 || std::size_t(ids_[i]) >= V)
      throw std::runtime_error(fmt::format("{}: token {} is {}, outside [0, {}), the vocabulary",
                                           file.string(), i, ids_[i], V));
}

void save_ids(const std::filesystem::path& file, std::span<const int> ids) {
  write_file(file, {reinterpret_cast<const char*>(ids.data()), ids.size_bytes()});
}

RunRecord record_of(std::span<const int> train, std::span<const int> held_out, std::size_t every) {
  return {every, Checksum().add(train).text(), Checksum().add(held_out).text()};
}

static void save_model_of(const RunFolder& folder, const Trainer& trainer,
                          const BpeTables& tokenizer) {
  save_model(folder.model(), trainer.model().config(), trainer.model().weights(), tokenizer,
             name_after(trainer.steps_done()));
}

void save_run(const RunFolder& folder, Trainer& trainer, const BpeTables& tokenizer,
              const LossCurve& curve, const RunRecord& record) {
  expect_finite(trainer, curve);
  save_model_of(folder, trainer, tokenizer);
  write_file(folder.csv(), csv_of(curve));
  write_file(folder.svg(), svg_of(curve));
  save_checkpoint(
      folder.state(), trainer, curve,
      GgufBytes()
          .entry("training.every", std::uint32_t(record.every))
          .entry("training.checksum.train", record.train)
          .entry("training.checksum.held_out", record.held_out)
          .entry("training.checksum.model", checksum_of_head(GgufFile::open(folder.model()))));
}

[[noreturn]] static void fail(const std::filesystem::path& file, std::string_view what) {
  throw std::runtime_error(fmt::format("{}: {}", file.string(), what));
}

RunRecord read_record(const RunFolder& folder, const GgufFile& model, const GgufFile& state) {
  expect_checksum(state);
  const auto expect_sum = [&](const std::filesystem::path& file, const std::string& sum,
                              const char* key) {
    if (sum != state.metadata().text(key))
      fail(file, "is damaged or of another run: its checksum is not the one in state.gguf");
    return sum;
  };
  const auto sum_of = [](const std::filesystem::path& file) {
    return Checksum().add(MappedFile(file).bytes()).text();
  };
  expect_sum(folder.model(), checksum_of_head(model), "training.checksum.model");
  const std::int64_t every = state.metadata().integer("training.every");
  if (every < 1)
    fail(folder.state(), fmt::format("training.every: wanted 1 or more, got {}", every));
  return {std::size_t(every),
          expect_sum(folder.train(), sum_of(folder.train()), "training.checksum.train"),
          expect_sum(folder.held_out(), sum_of(folder.held_out()), "training.checksum.held_out")};
}

/// The steps that a model's name states.
static std::size_t steps_of(const RunFolder& folder, const GgufFile& model) {
  const std::string name = model_name(model);
  std::size_t steps = 0;
  for (const char c : name)
    if (c >= '0' && c <= '9' && steps < 1'000'000'000) steps = 10 * steps + std::size_t(c - '0');
  if (name != name_after(steps)) fail(folder.model(), "is not the model of a run");
  return steps;
}

LossCurve go_on(const RunFolder& folder, const GgufFile& model, const GgufFile& state,
                const BpeTables& tokenizer, Trainer& trainer) {
  const std::string of_model = checksum_of(trainer.weights());
  LossCurve curve = read_checkpoint(state, trainer);
  const std::size_t steps = steps_of(folder, model), done = trainer.steps_done();
  if (steps < done || (steps == done && of_model != checksum_of(trainer.weights())))
    fail(folder.model(), "is damaged or of another run: its weights are not those of state.gguf");
  write_file(folder.svg(), svg_of(curve));
  write_file(folder.csv(), csv_of(curve));
  save_model_of(folder, trainer, tokenizer);
  return curve;
}

}  // namespace t2t
