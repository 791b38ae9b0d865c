#include "10_pretrained/program/open_session.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>
#include <utility>

#include "10_pretrained/model/adapter.hpp"
#include "10_pretrained/model/long_context.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "files/files.hpp"

namespace t2t {

GgufFile open_model(const std::string& path) {
  if (!std::filesystem::exists(path))
    throw std::runtime_error(path +
                             ": there is no such file; ./learn weights fetches this chapter's "
                             "model, and --model names another one");
  return GgufFile::open(path);
}

Session open_session(const Flags& flags, GgufFile file, Bpe bpe) {
  if (!flags.runs_experts && read_config(file).block.experts > 0)
    throw std::runtime_error(file.name() +
                             ": wanted a model without experts, got one with them: ./learn run 14 "
                             "--model opens it");
  Session session(std::move(file), std::move(bpe), flags.make_weight);
  session.make_state = flags.make_state;
  if (!flags.adapter.empty())
    session.model =
        with_adapter(std::move(session.model), read_adapter(GgufFile::open(flags.adapter)));
  if (!flags.pairing.empty())
    session.rotate_in(flags.pairing == "halves" ? Pairing::halves : Pairing::neighbours);
  if (!flags.rope_scaling.empty())
    session.model =
        with_long_context(std::move(session.model), parse_long_context(flags.rope_scaling));
  return session;
}

Session open_session(const Flags& flags) {
  GgufFile file = open_model(flags.model);
  Bpe bpe = read_tokenizer(file);
  return open_session(flags, std::move(file), std::move(bpe));
}

std::vector<int> file_ids(const Bpe& bpe, const std::string& path, SpecialTokens special) {
  const std::string text = read_file(path);
  expect_utf8(path, text);
  try {
    return bpe.encode(text, special);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}", path, error.what()));
  }
}

std::vector<int> ids_to_score(const Bpe& bpe, const std::string& path) {
  const std::vector<int> ids = file_ids(bpe, path, SpecialTokens::as_text);
  if (ids.size() < 2)
    throw std::invalid_argument(
        fmt::format("{}: wanted at least 2 tokens of text, got {}", path, ids.size()));
  return ids;
}

}  // namespace t2t
