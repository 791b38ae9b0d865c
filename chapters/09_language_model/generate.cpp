#include "09_language_model/generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "shapes.hpp"

namespace t2t {

std::string_view ending_text(Ending ending) {
  switch (ending) {
    case Ending::stop_token:
      return "a stop token";
    case Ending::caller:
      return "the caller";
    case Ending::most_tokens:
      return "the limit of tokens";
    case Ending::context_full:
      return "the end of the context";
  }
  return "";
}

static void expect_generation(const Generation& generation, std::size_t V) {
  expect(generation.most >= 1, "most, the tokens to generate", "at least 1", generation.most);
  expect_sampling(generation.sampling);
  for (const int stop : generation.stop_tokens)
    if (stop < 0 || std::size_t(stop) >= V)
      throw std::invalid_argument(
          fmt::format("stop tokens: wanted ids in [0, {}), got {}", V, stop));
}

Ending generate(const Model& model, ModelState& state, std::span<const int> prompt,
                const Generation& generation, Random& random,
                const std::function<bool(int id)>& on_token) {
  const std::size_t V = model.config().V;
  expect_generation(generation, V);
  Tensor<1> logits = empty(V);  // [V]
  SamplingScratch scratch(V);
  const auto go_on = [&](std::span<const int> ids) {
    const MoreTokens more{generation.sequence, ids};
    forward(model, state, {&more, 1}, {logits.data(), 1, V, V});
  };
  go_on(prompt);

  for (std::size_t count = 1;; ++count) {
    if (generation.filter) generation.filter(row(logits));
    const int id = next_token(row(logits), generation.sampling, random, scratch);
    if (std::ranges::find(generation.stop_tokens, id) != generation.stop_tokens.end())
      return Ending::stop_token;
    if (!on_token(id)) return Ending::caller;
    if (count == generation.most) return Ending::most_tokens;

    // A full context can still predict a token, but there is no position left to put it in.
    if (state.length(generation.sequence) == state.S) return Ending::context_full;
    go_on({&id, 1});
  }
}

std::vector<int> generate(const Model& model, ModelState& state, std::span<const int> prompt,
                          const Generation& generation, Random& random) {
  std::vector<int> ids;
  generate(model, state, prompt, generation, random, [&](int id) {
    ids.push_back(id);
    return true;
  });
  return ids;
}

}  // namespace t2t
