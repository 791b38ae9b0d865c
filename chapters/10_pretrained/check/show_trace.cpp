#include "10_pretrained/check/show_trace.hpp"

#include <fmt/format.h>

#include "files/npy.hpp"
#include "program/print.hpp"
#include "utf8_start.hpp"

namespace t2t {

void write_trace(const Session& session, const std::vector<int>& ids,
                 const std::filesystem::path& folder, Row logits) {
  ModelState state = session.make_state(session.model, ids.size(), {.chunk = ids.size()});
  forward(session.model, state, ids, logits, trace_to(folder));
  save_npy(folder / "ids.npy", ids);
}

bool show_comparison(const Comparison& comparison) {
  const std::size_t count = comparison.compared.size();
  if (!comparison.only_in_one.empty())
    print_paragraph(fmt::format("{} parts are in only one of the folders; the first is {}.",
                                comparison.only_in_one.size(),
                                printable(comparison.only_in_one[0])));
  if (!comparison.parting) {
    print_paragraph(
        fmt::format("All {} common parts agree, from {} to {}{}", count,
                    printable(comparison.compared.front()), printable(comparison.compared.back()),
                    comparison.worst > 0
                        ? fmt::format("; the largest difference is {:.0e} of a token's length.",
                                      comparison.worst)
                        : ", to the last bit."));
    return true;
  }
  const Parting& parting = *comparison.parting;
  if (count > 1)
    print_paragraph(fmt::format("{} parts agree; the last of them is {}.", count - 1,
                                printable(comparison.compared[count - 2])));
  if (!parting.why.empty())
    print_paragraph(
        fmt::format("They first differ at {}: {}.", printable(parting.name), parting.why));
  else
    print_paragraph(
        fmt::format("They first differ at {}: for token {} by {:.2g} of its length, and most in "
                    "channel {}, which has {:.4g} in one and {:.4g} in the other.",
                    printable(parting.name), parting.token, parting.distance, parting.channel,
                    parting.a, parting.b));
  print_paragraph("Usual causes: " +
                  usual_causes(parting.name, parting.why.empty() && parting.token > 0) + ".");
  return false;
}

}  // namespace t2t
