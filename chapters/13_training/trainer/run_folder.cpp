#include "13_training/trainer/run_folder.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include "10_pretrained/model/save_model.hpp"
#include "10_pretrained/tokenizer/byte_alphabet.hpp"
#include "program/files.hpp"

namespace t2t {

BpeTables byte_tokenizer() {
  BpeTables tables;
  tables.name = "bytes", tables.pre_tokenizer = "gpt-2";
  for (int byte = 0; byte < 256; ++byte)
    tables.tokens.push_back(to_byte_alphabet(std::string(1, char(byte))));
  tables.kinds.assign(256, TokenKind::normal);
  tables.tokens.push_back("<|endoftext|>");
  tables.kinds.push_back(TokenKind::control);
  tables.eos = 256;
  return tables;
}

MappedIds::MappedIds(const std::filesystem::path& file, std::size_t V) : file_(file) {
  const std::span<const std::uint8_t> bytes = file_.bytes();
  if (bytes.size() % sizeof(int) != 0)
    throw std::runtime_error(fmt::format("{}: wanted whole numbers of 4 bytes, got {} bytes",
                                         file.string(), bytes.size()));
  ids_ = {reinterpret_cast<const int*>(bytes.data()), bytes.size() / sizeof(int)};
  for (std::size_t i = 0; i < ids_.size(); ++i)
    if (ids_[i] < 0 || std::size_t(ids_[i]) >= V)
      throw std::runtime_error(fmt::format("{}: token {} is {}, outside [0, {}), the vocabulary",
                                           file.string(), i, ids_[i], V));
}

void save_ids(const std::filesystem::path& file, std::span<const int> ids) {
  write_file(file, {reinterpret_cast<const char*>(ids.data()), ids.size_bytes()});
}

void save_run(const RunFolder& folder, Trainer& trainer, const BpeTables& tokenizer,
              const LossCurve& curve) {
  const Model& model = trainer.model();
  save_model(folder.model(), model.config(), model.weights(), tokenizer,
             fmt::format("trained for {} steps", trainer.steps_done()));
  write_file(folder.path / "loss.csv", csv_of(curve));
  write_file(folder.path / "loss.svg", svg_of(curve));
  save_checkpoint(folder.state(), trainer, curve);
}

}  // namespace t2t
