#include "14_mixture_of_experts/shows/show_counts.hpp"

#include <fmt/format.h>

#include "09_language_model/accounts/accounts.hpp"
#include "14_mixture_of_experts/model/mixture_counts.hpp"
#include "program/print.hpp"

namespace t2t {

void show_counts() {
  print_section("What a mixture holds, and what a token uses");
  Table table({"model", ">experts", ">k", ">parameters", ">active", ">share"});
  for (const PublishedMixture& model : published_mixtures()) {
    const std::size_t all = total(count_parameters(model.config));
    const std::size_t active = active_parameters(model.config);
    table.add({model.name, std::to_string(model.config.block.experts),
               std::to_string(model.config.block.chosen), with_commas(all), with_commas(active),
               fmt::format("{:.1f} %", 100 * double(active) / double(all))});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The active parameters are all but those of the experts that were not chosen for the token. "
      "A token needs only these, but memory must hold every parameter.");

  print_section("How many of its experts a batch touches");
  Table touched({"experts, and k", ">T = 1", ">8", ">64", ">512"});
  for (const auto& [E, k] : {std::pair<std::size_t, std::size_t>{8, 2}, {64, 8}, {128, 8}}) {
    std::vector<std::string> cells = {fmt::format("E = {}, k = {}", E, k)};
    for (const std::size_t T : {1, 8, 64, 512})
      cells.push_back(fmt::format("{:.1f}", experts_touched(E, k, T)));
    touched.add(cells);
  }
  touched.print();
  fmt::print("\n");
  print_paragraph(
      "With random choices, T tokens are expected to use E·(1 − (1 − k/E)^T) different experts. "
      "Each of these experts is read once for the batch.");
}

}  // namespace t2t
