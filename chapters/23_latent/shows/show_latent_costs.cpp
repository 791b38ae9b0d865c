#include "23_latent/shows/show_latent_costs.hpp"

#include <fmt/format.h>

#include "23_latent/latent_costs.hpp"
#include "program/print.hpp"

namespace t2t {

void show_model_caches() {
  print_section("What the caches of published models hold, at 2 bytes per element");
  Table table({"model", ">elements per token", ">", ">bytes per token", ">131,072 tokens"});
  for (const auto& [name, formula, elements] : model_caches())
    table.add({name, formula, with_commas(elements), with_commas(2 * elements),
               fmt::format("{:.1f} GiB", 2 * double(elements) * 131072 / (1 << 30))});
  table.print();
  fmt::print("\n");
  print_paragraph(
      "All layers together. Expanded means that the cache holds every head's key, whose rotated "
      "part is a copy, and every head's value.");
}

void show_operations() {
  const LatentSettings v3 = deepseek_v3();
  const std::size_t expanded = expanded_operations(v3), absorbed = absorbed_operations(v3),
                    expanding = expanding_operations(v3);
  print_section("Operations for one query and one cached position: a layer of DeepSeek-V3");
  Table table({"form", "the cache holds", ">elements", ">operations"});
  table.add({"plain, keys and values kept", "expanded keys and values",
             with_commas(v3.H * (v3.query_width() + v3.Dv)), with_commas(expanded)});
  table.add({"absorbed", "latents", with_commas(v3.row_width()), with_commas(absorbed)});
  table.add({"plain, expanded in each step", "latents", with_commas(v3.row_width()),
             with_commas(expanding + expanded)});
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "The absorbed form has {:.1f} times the operations of the plain form on a {:.0f} times "
      "smaller cache. For many queries together, expanding each position once pays: a call of {} "
      "tokens or more has fewer operations if it expands.",
      double(absorbed) / double(expanded),
      double(v3.H * (v3.query_width() + v3.Dv)) / double(v3.row_width()),
      queries_worth_expanding(v3)));
}

}  // namespace t2t
