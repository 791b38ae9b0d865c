#include "12_quantization/program/quantize_task.hpp"

#include <fmt/format.h>

#include <map>
#include <stdexcept>
#include <utility>

#include "10_pretrained/program/open_session.hpp"
#include "12_quantization/formats/file_plan.hpp"
#include "12_quantization/formats/importance.hpp"
#include "12_quantization/formats/quantize.hpp"
#include "12_quantization/formats/quantize_file.hpp"
#include "12_quantization/formats/scale_search.hpp"
#include "files/files.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "program/progress.hpp"
#include "utf8_start.hpp"

namespace t2t {

void add_flags(Program& program, QuantizeFlags& flags) {
  program.input_and_output("quantize", flags.files,
                           "write one file's model to another file, with its matrices in --type");
  program.word("type", flags.type, "q8_0, q4_0, q4_1, q4_k or q6_k");
  program.yes("search", flags.search, "with --quantize: search for the scale with the least error");
  program.input(
      "importance", flags.importance,
      "with --quantize: search, weighting columns by their importance for this text file");
}

/// "30 matrices in Q4_K, 181 in Q4_1, since their rows are not whole blocks of 256, …"
static std::string plan_text(const std::vector<PlannedTensor>& plan, TensorType type) {
  std::size_t rounded = 0, vectors = 0;
  std::map<std::string, std::size_t> others;  // matrices of another type
  for (const PlannedTensor& planned : plan) {
    if (!planned.is_matrix)
      ++vectors;
    else if (planned.type == type)
      ++rounded;
    else
      ++others[type_name(planned.type)];
  }
  std::string text = fmt::format("{} matrices in {}", rounded, type_name(type));
  for (const auto& [name, count] : others)
    text += fmt::format(", {} in {}, since their rows are not whole blocks of {}", count, name,
                        block_layout(type).numbers);
  return text + fmt::format(", {} vectors as they were", vectors);
}

/// The importance of all columns for a text file, and a line about the text.
static Importance importance_of_text(const GgufFile& in, const std::string& path,
                                     std::size_t window) {
  const std::vector<int> ids = ids_to_score(read_tokenizer(in), path);
  const Importance importance = importance_of(in, ids, window, [&](const Perplexity& so_far) {
    show_progress(fmt::format("  {} of {} tokens read ", so_far.scored, ids.size()));
  });
  show_progress("");
  fmt::print("{}: {} tokens read\n", printable_lines(path), with_commas(ids.size()));
  return importance;
}

/// Writes the file, and describes its contents.
static int quantize(const QuantizeFlags& flags, std::size_t window) {
  if (flags.files.size() != 2) throw std::invalid_argument("--quantize: wanted two files, got one");
  const TensorType type = rounded_type(flags.type);
  expect_writable(flags.files[1]);
  const GgufFile in = GgufFile::open(flags.files[0]);
  const std::vector<PlannedTensor> plan = plan_tensors(in, type);
  Importance importance;
  if (!flags.importance.empty()) importance = importance_of_text(in, flags.importance, window);

  const RoundRows round = [&](TensorType type, ConstMatrix x, std::string_view name) {
    if (const auto found = importance.find(name); found != importance.end())
      return search_rows(type, x, found->second);
    return flags.search || !importance.empty() ? search_rows(type, x) : quantize_rows(type, x);
  };
  const QuantizedFile written =
      quantize_file(in, type, flags.files[1], round, [&](std::size_t done) {
        show_progress(fmt::format("  {} of {} tensors written ", done, plan.size()));
      });
  show_progress("");
  fmt::print("{}: {}, {:.2f} bits per weight: {}\n", printable_lines(flags.files[1]),
             bytes_text(double(written.bytes)),
             8 * double(written.weight_bytes) / double(written.weights), plan_text(plan, type));
  fmt::print("the rounded weights have changed by {:.2f} %\n", 100 * written.error);
  return 0;
}

Task quantize_task(const QuantizeFlags& flags, const std::size_t& window) {
  return {"quantize", {"type", "search", "importance", "window"}, [&] {
            return quantize(flags, window);
          }};
}

}  // namespace t2t
