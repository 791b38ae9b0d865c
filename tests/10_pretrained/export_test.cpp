// What must be true of an exported model, and of the program that runs it from one file.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "09_language_model/language_model.hpp"
#include "10_pretrained/model/export_model.hpp"
#include "10_pretrained/model/tiny_model.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "files/files.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"
#include "support/silence.hpp"

// The program itself: its functions, and its main under another name.
#define main whole_model_main
#include "../chapters/10_pretrained/whole_model.cpp"
#undef main

static const std::vector<int> prompt = {72, 101, 121, 32, 97};

namespace {
struct Tiny {
  t2t::Config config = t2t::tiny_config();
  t2t::Random random{2};
  std::vector<std::uint8_t> bytes = t2t::gguf_file(config, t2t::draw_model(config, random));
  t2t::GgufFile file{"tiny", bytes};
  t2t::Bpe bpe = t2t::read_tokenizer(file);
  t2t::Model model = t2t::read_model(file);
};

/// A file that is gone when the test ends.
struct Exported {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("t2t_export_" + std::to_string(::getpid()));
  explicit Exported(const std::string& bytes) { t2t::write_file(path, bytes); }
  ~Exported() { std::filesystem::remove(path); }
};
}  // namespace

/// What reading it throws, "nothing" if it can be read.
static std::string refusal(const std::string& bytes) {
  const Exported file(bytes);
  try {
    read_model(file.path.string());
    return "nothing";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST_CASE("the model in one file gives the logits of the formula, token by token") {
  const Tiny tiny;
  for (const auto& [tied, scaled] : {std::pair{false, false}, {true, false}, {true, true}}) {
    t2t::Config config = tiny.config;
    config.tied = tied;
    if (scaled) config.block.frequencies = t2t::rope_frequencies(config.block.D, 3);
    t2t::Random random(3);
    t2t::ModelWeights weights = t2t::draw_model(config, random);
    weights.final_norm.gain = random.normal<1>({config.block.C});
    const t2t::Model model(config, std::move(weights));
    const Exported file(t2t::exported(model, tiny.bpe, prompt));
    const Model whole = read_model(file.path.string());
    CHECK(whole.prompt == prompt);
    CHECK(whole.end == 257);
    CHECK(whole.tokens[97] == "a");
    const t2t::Tensor<2> want = t2t::language_model(prompt, model);  // [T, V]
    t2t::Tensor<2> got = t2t::empty(prompt.size(), config.V);
    Cache cache;
    for (std::size_t t = 0; t < prompt.size(); ++t)
      std::ranges::copy(logits_of(whole, run_token(whole, cache, prompt[t])),
                        t2t::row(got, t).begin());
    // Logits are of size 1. A sum of up to F = 96 products keeps eps·√96 of that, some ten steps
    // deep, on both sides: the bound of 10_pretrained_test, twice.
    CHECK(t2t::all_close(got, want, 2 * 0x1p-24 * 96));
  }
}

TEST_CASE("a vocabulary without an end is exported with -1 in its place") {
  const Tiny tiny;
  t2t::BpeTables tables = t2t::read_tables(tiny.file);
  tables.eos.reset();
  std::string whole;
  REQUIRE_NOTHROW(whole = t2t::exported(tiny.model, t2t::Bpe(tables), prompt));
  const Exported file(whole);
  CHECK(read_model(file.path.string()).end == -1);
}

TEST_CASE("a file that is cut, too long or changed in its sizes is refused") {
  const Tiny tiny;
  std::string whole;
  REQUIRE_NOTHROW(whole = t2t::exported(tiny.model, tiny.bpe, prompt));
  CHECK(refusal(whole) == "nothing");
  for (const std::size_t size : {0ul, 7ul, 11ul, 40ul, 60ul, 5000ul, whole.size() - 1})
    CHECK(refusal(whole.substr(0, size)).find("the file ends early") == 0);
  CHECK(refusal(whole + "x") == "the file has 1 bytes too many");
  CHECK(refusal("GGUF" + whole.substr(4)) ==
        "wanted a file that ./learn run 10 --export has written");
  const auto with = [&](std::size_t at, std::uint32_t value) {
    std::string bytes = whole;
    std::memcpy(&bytes[at], &value, 4);
    return refusal(bytes);
  };
  CHECK(with(8, 2) == "the version: wanted 1, got 2");
  for (std::size_t size = 0; size < 8; ++size) {
    CHECK(with(12 + 4 * size, 0) == "a size: wanted 1 to 16777216, got 0");
    CHECK(with(12 + 4 * size, ~0u) == "a size: wanted 1 to 16777216, got 4294967295");
  }
  CHECK(with(28, 15).find("sizes: wanted an even D") == 0);
  CHECK(with(whole.size() - 4, 258) == "the prompt: wanted ids from 0 to 257, got 258");
  CHECK(with(whole.size() - 24, 0) == "the prompt: wanted 1 to 256 tokens, got 0");
}

TEST_CASE("the program's exit status: 0 for a text, 1 for a refusal") {
  const Tiny tiny;
  std::string whole;
  REQUIRE_NOTHROW(whole = t2t::exported(tiny.model, tiny.bpe, prompt));
  const Exported file(whole);
  const auto status = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "whole_model");
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    const t2t::Silence silence;
    return whole_model_main(int(pointers.size()), pointers.data());
  };
  CHECK(status({file.path.string(), "2"}) == 0);
  CHECK(status({file.path.string(), "2", "1,2,257"}) == 0);
  CHECK(status({file.path.string(), "2", "258"}) == 1);
  CHECK(status({file.path.string(), "2", "1;2"}) == 1);
  CHECK(status({file.path.string(), "two"}) == 1);
  CHECK(status({file.path.string() + ".none"}) == 1);
  CHECK(status({}) == 1);
}

TEST_CASE("a model that whole_model.cpp does not compute is not exported") {
  const Tiny tiny;
  t2t::Config config = tiny.config;
  config.block.pairing = t2t::Pairing::halves;
  t2t::Random random(1);
  const t2t::Model halves(config, t2t::draw_model(config, random));
  CHECK_THROWS_AS(t2t::exported(halves, tiny.bpe, prompt), std::invalid_argument);
  config = tiny.config;
  config.block.window = 4;
  const t2t::Model window(config, t2t::draw_model(config, random));
  CHECK_THROWS_AS(t2t::exported(window, tiny.bpe, prompt), std::invalid_argument);
  for (const std::size_t V : {257, 259}) {
    config = tiny.config, config.V = V;
    const t2t::Model other(config, t2t::draw_model(config, random));
    REFUSES(t2t::exported(other, tiny.bpe, prompt), fmt::format("tokens: wanted {}, got 258", V));
  }
  CHECK_THROWS_AS(t2t::exported(tiny.model, tiny.bpe, {}), std::invalid_argument);
  CHECK_THROWS_AS(t2t::exported(tiny.model, tiny.bpe, std::vector<int>{258}),
                  std::invalid_argument);
}
