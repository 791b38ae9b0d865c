#include "09_language_model/encoder_decoder/encoder_decoder.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "01_embedding/embedding.hpp"
#include "02_normalization/rms_norm.hpp"
#include "03_rope/positions/positions.hpp"
#include "09_language_model/sampling.hpp"
#include "shapes.hpp"

namespace t2t {

EncoderDecoder draw_encoder_decoder(const EncoderDecoderConfig& config, Random& random) {
  const std::size_t C = config.C;
  const Tensor<1> ones = xt::ones<float>({C});
  const auto attention = [&] { return draw_attention_weights(C, random); };
  const auto network = [&] { return feed_forward_weights(C, config.F, config.activation, random); };
  EncoderDecoder model{.config = config,
                       .embedding = random.normal<2>({config.V, C}, 1 / std::sqrt(float(C))),
                       .encoder = {},
                       .encoder_norm = ones,
                       .decoder = {},
                       .decoder_norm = ones};
  for (std::size_t l = 0; l < config.L; ++l) {
    model.encoder.push_back({ones, attention(), ones, network()});
    model.decoder.push_back({ones, attention(), ones, attention(), ones, network()});
  }
  return model;
}

static void expect_blocks(const EncoderDecoder& model) {
  const std::size_t L = model.config.L;
  expect_shape("embedding", model.embedding, {model.config.V, model.config.C});
  if (model.encoder.size() != L || model.decoder.size() != L)
    throw std::invalid_argument(
        fmt::format("blocks: wanted L = {} in each stack, got {} in the encoder and {} in the "
                    "decoder",
                    L, model.encoder.size(), model.decoder.size()));
}

Tensor<2> begin_stream(std::span<const int> ids, const EncoderDecoder& model) {
  expect_blocks(model);
  const std::size_t T = ids.size(), C = model.config.C;
  expect(T >= 1, "T, the tokens", "at least 1", T);
  Tensor<2> x = empty(T, C);  // [T, C]
  embed_rows(ids, model.embedding, x);
  return std::sqrt(float(C)) * x + sinusoidal_positions(T, C);
}

/// RMSNorm with the model's eps, which also keeps what it reads if that is wanted.
static auto norm_of(const EncoderDecoder& model, NormInputs* kept) {
  return [eps = model.config.eps, kept](const Tensor<2>& x, const Tensor<1>& gain) {
    if (kept) kept->push_back(x);
    return rms_norm(x, gain, eps);
  };
}

Tensor<2> encode(std::span<const int> source, const EncoderDecoder& model, NormInputs* kept) {
  const auto norm = norm_of(model, kept);

  Tensor<2> x = begin_stream(source, model);  // [S, C]
  for (const EncoderBlock& block : model.encoder) {
    x += multi_head_attention(norm(x, block.self_norm), block.self, model.config.H, Mask::none);
    x += feed_forward(norm(x, block.network_norm), block.network, model.config.activation);
  }
  return norm(x, model.encoder_norm);  // [S, C]
}

Tensor<2> decode(std::span<const int> target, const Tensor<2>& encoded, const EncoderDecoder& model,
                 NormInputs* kept) {
  const std::size_t H = model.config.H;
  const auto norm = norm_of(model, kept);

  Tensor<2> y = begin_stream(target, model);  // [T, C]
  for (const DecoderBlock& block : model.decoder) {
    y += multi_head_attention(norm(y, block.self_norm), block.self, H, Mask::causal);
    y += multi_head_attention(norm(y, block.cross_norm), encoded, block.cross, H, Mask::none);
    y += feed_forward(norm(y, block.network_norm), block.network, model.config.activation);
  }
  return unembed(norm(y, model.decoder_norm), model.embedding);  // [T, V]
}

std::vector<int> greedy_answer(std::span<const int> source, int start, int stop, std::size_t most,
                               const EncoderDecoder& model) {
  const Tensor<2> encoded = encode(source, model);  // [S, C], once for the whole answer
  std::vector<int> target = {start};
  while (target.size() <= most) {
    const Tensor<2> logits = decode(target, encoded, model);  // [T, V]
    const int id = greedy(row(logits, target.size() - 1));
    if (id == stop) break;
    target.push_back(id);
  }
  return {target.begin() + 1, target.end()};
}

}  // namespace t2t
