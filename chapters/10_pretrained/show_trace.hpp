// The first place where two traces part, and what usually makes them. For main.cpp.
#pragma once

#include "10_pretrained/session.hpp"
#include "10_pretrained/trace_file.hpp"
#include "10_pretrained/utf8.hpp"
#include "npy.hpp"

namespace t2t {

/// One forward pass over a prompt with its trace on disk.
inline void write_trace(const Session& session, const std::vector<int>& ids,
                        const std::filesystem::path& folder, Row logits) {
  ModelState state(session.config(), ids.size(), {.chunk = ids.size()});
  forward(session.model, state, ids, logits, trace_to(folder));
  save_npy(folder / "ids.npy", ids);
}

/// Returns whether they agree.
inline bool show_comparison(const Comparison& comparison) {
  const std::size_t count = comparison.compared.size();
  if (!comparison.only_in_one.empty())
    print_paragraph(fmt::format("{} parts are in one of the folders only, {} first.",
                                comparison.only_in_one.size(),
                                printable(comparison.only_in_one[0])));
  if (!comparison.parting) {
    print_paragraph(
        fmt::format("They agree in all {} parts, {} to {}; furthest apart by {:.0e} of a "
                    "token's length.",
                    count, printable(comparison.compared.front()),
                    printable(comparison.compared.back()), comparison.worst));
    return true;
  }
  const Parting& parting = *comparison.parting;
  if (count > 1)
    print_paragraph(fmt::format("{} parts agree, the last of them {}.", count - 1,
                                printable(comparison.compared[count - 2])));
  if (!parting.why.empty())
    print_paragraph(fmt::format("They part at {}: {}.", printable(parting.name), parting.why));
  else
    print_paragraph(
        fmt::format("They part at {}: token {} is {:.2g} of its length away; furthest "
                    "is channel {}, {:.4g} against {:.4g}.",
                    printable(parting.name), parting.token, parting.distance, parting.channel,
                    parting.a, parting.b));
  print_paragraph("Usual causes: " +
                  usual_causes(parting.name, parting.why.empty() && parting.token > 0) + ".");
  return false;
}

}  // namespace t2t
