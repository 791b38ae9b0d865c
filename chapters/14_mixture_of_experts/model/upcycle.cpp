#include "14_mixture_of_experts/model/upcycle.hpp"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/tokenizer/utf8.hpp"
#include "12_quantization/formats/file_plan.hpp"
#include "14_mixture_of_experts/router.hpp"
#include "files/files.hpp"
#include "random.hpp"

namespace t2t {

namespace {
/// A tensor of the new file: bytes of the old file, once or several times, or a router's own.
struct Copied {
  std::string name;
  TensorType type;
  std::vector<std::size_t> shape;
  std::span<const std::uint8_t> bytes;
  std::size_t times = 1;

  std::uint64_t size() const { return times * bytes.size(); }
};
}  // namespace

static void expect_dense_llama(const GgufFile& in, const Config& config) {
  const std::string_view name = in.metadata().text("general.architecture");
  if (name != "llama")
    throw std::runtime_error(
        fmt::format("{}: general.architecture: wanted llama, got {}", in.name(), printable(name)));
  if (config.block.experts > 0)
    throw std::runtime_error(in.name() + ": wanted a model without experts, got one with them");
  expect_tensors(in, config);
}

/// All tensors of the new file, with the routers at the end.
static std::vector<Copied> tensors_of(const GgufFile& in, std::size_t E,
                                      const std::vector<Tensor<2>>& routers) {
  std::vector<Copied> tensors;
  for (const GgufTensor& tensor : in.tensors()) {
    Copied copied{std::string(tensor.name), tensor.type, tensor.shape, tensor.bytes};
    for (const std::string matrix : {"ffn_gate", "ffn_up", "ffn_down"})
      if (const std::size_t at = copied.name.find(matrix + ".weight"); at != copied.name.npos) {
        copied.name.replace(at, matrix.size(), matrix + "_exps");
        copied.shape.insert(copied.shape.begin(), E);
        copied.times = E;
        break;
      }
    tensors.push_back(copied);
  }
  for (std::size_t l = 0; l < routers.size(); ++l) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(routers[l].data());
    tensors.push_back({fmt::format("blk.{}.ffn_gate_inp.weight", l),
                       TensorType::f32,
                       {E, routers[l].shape(1)},
                       {bytes, sizeof(float) * routers[l].size()}});
  }
  return tensors;
}

static std::uint64_t rest_of(std::uint64_t size, std::uint64_t alignment) {
  return (alignment - size % alignment) % alignment;
}

/// The new file up to its first tensor.
static std::vector<std::uint8_t> head_of(const GgufFile& in, const Upcycling& upcycling,
                                         const std::vector<Copied>& tensors) {
  const std::vector<GgufEntry>& entries = in.metadata().entries();
  const std::uint64_t alignment = alignment_of(in);
  GgufBytes head;
  head.header(tensors.size(), entries.size() + 2);
  for (const GgufEntry& entry : entries) copy_entry(entry, head);
  head.entry("llama.expert_count", std::uint32_t(upcycling.experts));
  head.entry("llama.expert_used_count", std::uint32_t(upcycling.chosen));
  std::uint64_t offset = 0;
  for (const Copied& tensor : tensors) {
    head.tensor(tensor.name, {tensor.shape.rbegin(), tensor.shape.rend()},
                std::uint32_t(tensor.type), offset);
    offset += tensor.size() + rest_of(tensor.size(), alignment);
  }
  return head.pad(alignment).bytes;
}

std::uint64_t upcycle(const GgufFile& in, const Upcycling& upcycling,
                      const std::filesystem::path& out,
                      const std::function<void(std::size_t done, std::size_t all)>& after_tensor) {
  expect_router({upcycling.chosen}, upcycling.experts, 0);
  const Config config = read_config(in);
  expect_dense_llama(in, config);
  Random random(upcycling.seed);
  std::vector<Tensor<2>> routers;  // [L] of [E, C]
  for (std::size_t l = 0; l < config.L; ++l)
    routers.push_back(random.normal<2>({upcycling.experts, config.block.C},
                                       1 / std::sqrt(float(config.block.C))));
  const std::vector<Copied> tensors = tensors_of(in, upcycling.experts, routers);
  const std::vector<std::uint8_t> head = head_of(in, upcycling, tensors);

  std::uint64_t written = 0;
  write_file(out, [&](const WriteBytes& write) {
    const auto put = [&](std::span<const std::uint8_t> bytes) {
      write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      written += bytes.size();
    };
    put(head);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      for (std::size_t time = 0; time < tensors[i].times; ++time) put(tensors[i].bytes);
      put(std::vector<std::uint8_t>(rest_of(tensors[i].size(), alignment_of(in))));
      if (after_tensor) after_tensor(i + 1, tensors.size());
    }
    in.expect_whole();
  });
  return written;
}

}  // namespace t2t
