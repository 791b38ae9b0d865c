// Shows multi-head latent attention: the plain and the absorbed form, what a cache of latents holds
// beside the caches of published models, and a text in steps. With --model it runs a file of
// DeepSeek's architecture.
#include <string>

#include "23_latent/shows/show_forms.hpp"
#include "23_latent/shows/show_latent_costs.hpp"
#include "23_latent/shows/show_latent_file.hpp"
#include "23_latent/shows/show_steps.hpp"
#include "memory.hpp"
#include "program/program.hpp"

using namespace t2t;

/// Bytes of the weights, the tokens' rows, one head's scores and the rope table.
static double bytes_needed(const LatentSettings& settings, double T) {
  const double weights = double(latent_parameters(settings)), H = double(settings.H);
  const double of_token = 4 * double(settings.C) + 3 * H * double(settings.row_width()) +
                          2 * H * double(settings.query_width() + settings.Dv);
  return sizeof(float) * (weights + T * of_token + 3 * T * T + 256 * double(settings.C));
}

int main(int argc, char** argv) {
  std::size_t T = 64;
  LatentFileFlags file;
  LatentSettings settings{.C = 64, .H = 4, .N = 16, .R = 8, .Dv = 16, .K = 32, .Q = 24};
  Program program("23_latent",
                  "Latent attention: keys and values of all heads from one short vector a token, "
                  "in a plain form and in one that never makes them. --model runs a file of "
                  "DeepSeek-V2's or V3's architecture.");
  program.takes_text();
  program.size("tokens", T, "bytes of the text, T; with --model, tokens to generate at most");
  program.size("width", settings.C, "channels of a token's vector, C");
  program.size("heads", settings.H, "query heads, H");
  program.size("unrotated", settings.N, "a head's channels without RoPE, N");
  program.size("rotated", settings.R, "a head's channels with RoPE, R, which is even");
  program.size("value", settings.Dv, "channels of a head's value, Dv");
  program.size("rank", settings.K, "rank of the latent, K");
  program.size("query-rank", settings.Q, "rank of the queries, Q; 0: none", 0);
  program.input("model", file.model, "a GGUF file of the architecture deepseek2");
  program.word("prompt", file.prompt, "with --model: a text to continue");
  program.word("ids", file.ids, "with --model: ids to continue, as in 1,2,3");
  program.yes("float", file.floats, "with --model: expand the weights of the networks into floats");
  program.has_solutions(solutions);
  const Task run_file = {"model", {"prompt", "ids", "tokens", "float"}, [&] {
                           file.tokens = T;
                           return show_latent_file(program, file);
                         }};
  const std::vector<std::string> sizes = {"tokens",  "width", "heads", "unrotated",
                                          "rotated", "value", "rank",  "query-rank",
                                          "text",    "file",  "seed",  "save"};
  const Task tour = {"", sizes, [&] {
                       expect_latent(settings);
                       expect_memory(bytes_needed(settings, double(program.text(T).size())),
                                     "--tokens, --width, --heads and the other sizes");
                       show_by_hand();
                       show_equal(program.seed());
                       show_model_caches();
                       show_operations();
                       show_steps(program, settings, T);
                       show_latent_speed();
                       return 0;
                     }};
  return program.run_tasks(argc, argv, {{run_file, tour}, {{"prompt", "ids"}, {"text", "file"}}});
}
