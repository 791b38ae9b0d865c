#include "10_pretrained/program/show_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "09_language_model/accounts/accounts.hpp"
#include "10_pretrained/model/architecture.hpp"
#include "program/print.hpp"
#include "shapes.hpp"
#include "utf8_start.hpp"

namespace t2t {

static std::string megabytes(double bytes) { return fmt::format("{:.1f} MB", bytes / 1e6); }

void show_metadata(const GgufFile& file) {
  print_section("Metadata");
  Table table({"key", "value"});
  const std::size_t room = std::max<std::size_t>(terminal_width(), 80) - 46;
  for (const GgufEntry& entry : file.metadata().entries())
    table.add({printable(entry.key, 42), printable(value_text(entry), room)});
  table.print();
}

void show_tensors(const GgufFile& file) {
  print_section("Tensors");
  Table table({"name", "shape", "type", ">bytes"});
  std::map<std::string, std::pair<std::size_t, double>> of_type;
  std::size_t left_out = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    auto& [count, bytes] = of_type[type_name(tensor.type)];
    ++count, bytes += double(tensor.size);
    if (tensor.name.starts_with("blk.") && !tensor.name.starts_with("blk.0."))
      ++left_out;
    else
      table.add({printable(tensor.name), shape_text(tensor.shape), type_name(tensor.type),
                 with_commas(tensor.size)});
  }
  table.print();
  fmt::print("\n");
  std::string sums = fmt::format("{} tensors; {} of them, in the other blocks, are not listed.",
                                 file.tensors().size(), left_out);
  for (const auto& [type, sum] : of_type)
    sums += fmt::format(" {}: {}, {}.", type, sum.first, megabytes(sum.second));
  print_paragraph(sums);
}

void show_summary(const Session& session) {
  const Config& config = session.config();
  const BlockSettings& block = config.block;
  std::uint64_t stored = 0;
  for (const GgufTensor& tensor : session.file.tensors()) stored += tensor.size;
  const Parameters parameters = count_parameters(config);
  print_section("The file");
  print_paragraph(fmt::format("{}: {}",
                              std::filesystem::path(session.file.name()).filename().string(),
                              model_name(session.file)));
  fmt::print("\n");
  Table table({"", ">", "where it comes from"});
  const auto add = [&](const char* what, std::size_t size, const std::string& from) {
    table.add({what, with_commas(size), from});
  };
  const auto key = [&](const char* name) {
    const std::string key = model_key(session.file, name);
    return session.file.metadata().has(key) ? key : "the file has no " + key;
  };
  table.add({"architecture", printable(session.file.metadata().text("general.architecture")),
             "general.architecture"});
  add("width C", block.C, key("embedding_length"));
  add("blocks L", config.L, key("block_count"));
  add("query heads H", block.H, key("attention.head_count"));
  add("key and value heads G", block.G, key("attention.head_count_kv"));
  add("feed-forward width F", block.F, key("feed_forward_length"));
  add("vocabulary V", config.V, "token_embd.weight's rows");
  add("longest sequence", config.T_max, key("context_length"));
  table.add({"RoPE's theta", fmt::format("{}", block.theta), key("rope.freq_base")});
  table.add({"head", config.tied ? "tied" : "separate",
             config.tied ? "without output.weight, the head is the embedding" : "output.weight"});
  add("parameters", total(parameters), "counted from these sizes");
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format("The file holds {} of weights, which become {} of float32.",
                              megabytes(double(stored)),
                              megabytes(double(bytes(session.model.weights())))));
}

}  // namespace t2t
