// What must be true of the whole model in one file with the real weights, which T2T_WEIGHTS names.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "09_language_model/fast/forward.hpp"
#include "10_pretrained/model/export_model.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "files/files.hpp"
#include "support/all_close.hpp"

// The program's functions; its main under another name.
#define main whole_model_main
#include "../chapters/10_pretrained/whole_model.cpp"
#undef main

TEST_CASE("the model in one file gives chapter 10's logits, all V of them") {
  const char* weights = std::getenv("T2T_WEIGHTS");
  CHECK_MESSAGE(weights, "T2T_WEIGHTS is not set: it names the .gguf file");
  if (!weights) return;
  const t2t::GgufFile file = t2t::GgufFile::open(weights);
  const t2t::Bpe bpe = t2t::read_tokenizer(file);
  const t2t::Model model = t2t::read_model(file);
  const std::vector<int> prompt = bpe.encode("Once upon a time, in a village by the sea,");
  t2t::Tensor<1> want = t2t::empty(model.config().V);
  t2t::ModelState state(model.config(), prompt.size());
  t2t::forward(model, state, prompt, t2t::row(want));

  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("t2t_whole_" + std::to_string(::getpid()));
  t2t::write_file(path, t2t::exported(model, bpe, prompt));
  const Model whole = read_model(path.string());
  std::filesystem::remove(path);
  CHECK(whole.prompt == prompt);
  Cache cache;
  const Floats logits = read_prompt(whole, cache, whole.prompt);
  t2t::Tensor<1> got = t2t::empty(logits.size());
  std::ranges::copy(logits, got.begin());
  // Each is within 5e-4 of float64, or the other tests of these weights fail.
  const t2t::Closeness close = t2t::all_close(got, want, 1e-3);
  CHECK_MESSAGE(close, close);
  MESSAGE(close.report);
}
