#include "25_sinks/layers/load_smollm3.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <tuple>

#include "10_pretrained/file/file_values.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "25_sinks/layers/layer_caches.hpp"

namespace t2t {

static constexpr std::size_t nope_step = 4;

bool is_smollm3(const GgufFile& file) { return is_of_architecture(file, "smollm3"); }

Config read_smollm3_config(const GgufFile& file) {
  const FileValues values(file, "smollm3");
  BlockSettings block{};
  std::tie(block.C, block.H, block.G, block.D) = values.head_sizes();
  block.F = values.size("feed_forward_length");
  block.theta = float(values.number("rope.freq_base", 10000));
  block.eps = float(values.number("attention.layer_norm_rms_epsilon"));
  values.expect_width_of_a_head("rope.dimension_count", block.D);
  values.expect_width_of_a_head("attention.value_length", block.D);
  const std::string scaling = values.text("rope.scaling.type", "none");
  if (scaling != "none") values.fail("rope.scaling.type", "wanted none, got " + scaling);
  const Config config{.block = block,
                      .L = values.size("block_count"),
                      .V = values.vocabulary(),
                      .T_max = values.size("context_length"),
                      .tied = !file.has_tensor("output.weight")};
  values.expect_blocks(config.L);
  try {
    return with_rope_in(config, rope_but_every(nope_step, config.L));
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(fmt::format("{}: {}", file.name(), error.what()));
  }
}

Model read_smollm3(const GgufFile& file) {
  const Config config = read_smollm3_config(file);
  return Model(config, read_weights(file, config));
}

}  // namespace t2t
