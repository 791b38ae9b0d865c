#include "10_pretrained/model/export_model.hpp"

#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "01_embedding/embedding.hpp"
#include "09_language_model/accounts/accounts.hpp"
#include "memory.hpp"
#include "shapes.hpp"

namespace t2t {

template <class Number>
static void put(std::string& bytes, Number value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

static void put_header(std::string& bytes, const Config& config, std::optional<int> end) {
  const BlockSettings& block = config.block;
  bytes += "T2TWHOLE";
  put(bytes, std::uint32_t(1));
  for (const std::size_t size : {block.C, config.L, block.H, block.G, block.D, block.F, config.V,
                                 config.T_max, std::size_t(config.tied)})
    put(bytes, std::uint32_t(size));
  put(bytes, std::int32_t(end.value_or(-1)));
  put(bytes, block.eps);
  for (const double frequency : block.frequencies.empty()
                                    ? rope_frequencies(block.D, double(block.theta))
                                    : block.frequencies)
    put(bytes, frequency);
}

static void put_floats(std::string& bytes, std::span<const float> floats) {
  bytes.append(reinterpret_cast<const char*>(floats.data()), floats.size_bytes());
}

static void put_weights(std::string& bytes, const Model& model) {
  for_each_tensor(model.weights(), model.config(),
                  [&]<class Stored>(const TensorInfo&, const Stored& tensor) {
                    if constexpr (std::is_same_v<Stored, Weight>)
                      put_floats(bytes, {tensor.floats().data(), tensor.size()});
                    else
                      put_floats(bytes, row(tensor));
                  });
}

std::string exported(const Model& model, const Bpe& bpe, std::span<const int> prompt) {
  const Config& config = model.config();
  // whole_model.cpp computes no others.
  expect_only(differences_from_llama(config), {Difference::scaled_rope, Difference::tied},
              "the model to export");
  expect(bpe.size() == config.V, "tokens", std::to_string(config.V), bpe.size());
  expect(!prompt.empty(), "T, the tokens of the prompt", "at least 1", 0);
  expect_ids(prompt, config.V);
  const double floats = sizeof(float) * double(total(count_parameters(config)));
  expect_memory(floats, "the file to export", "export a smaller model");

  std::string bytes;
  bytes.reserve(std::size_t(floats) + 32 * config.V + 4 * prompt.size());
  put_header(bytes, config, bpe.eos());
  put_weights(bytes, model);
  for (std::size_t id = 0; id < bpe.size(); ++id) {
    const std::string& token = bpe.bytes(int(id));
    put(bytes, std::uint32_t(token.size()));
    bytes += token;
  }
  put(bytes, std::uint32_t(prompt.size()));
  for (const int id : prompt) put(bytes, std::int32_t(id));
  return bytes;
}

}  // namespace t2t
