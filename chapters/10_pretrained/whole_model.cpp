// A language model in one file. It reads what `./learn run 10 --export model.bin` has written and
// continues the text in it, with C++20 and the standard library alone:
//
//   g++ -std=c++20 -O3 -march=native chapters/10_pretrained/whole_model.cpp -o whole_model
//   ./whole_model model.bin 40
//
// This is the one copy in the book. Chapters 01 to 10 explain, test and speed up each part; here
// the parts stand together as plain loops, in the order in which a token meets them, for one
// sequence on one thread. docs/whole_model.md walks through it. Letters: C is the width of the
// stream, L the number of blocks, H and G the heads of queries and of keys and values, D the width
// of a head, F the width of the feed-forward network, V the vocabulary's size.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

using Floats = std::vector<float>;

struct Sizes {
  std::uint32_t C, L, H, G, D, F, V, T_max, tied;
};
struct Block {
  Floats attention_norm;        // [C]
  Floats w_q, w_k, w_v, w_o;    // [H·D, C], [G·D, C], [G·D, C], [C, H·D]
  Floats feed_forward_norm;     // [C]
  Floats w_gate, w_up, w_down;  // [F, C], [F, C], [C, F]
};
struct Model {
  Sizes sizes;
  float eps;                        // of the norms
  std::vector<double> frequencies;  // [D/2], RoPE's angles per position
  Floats embedding;                 // [V, C]
  std::vector<Block> blocks;        // L
  Floats final_norm, head;          // [C]; [V, C], empty when the embedding serves as the head
  std::vector<std::string> tokens;  // [V], the bytes of each token
  std::vector<int> prompt;          // ids of the text to continue
  int end;                          // the id that ends a text, or −1
};

// ---- The file ----

/// Reads a file from front to back. Every count is compared with the bytes that are left before
/// anything is allocated; a failed comparison throws std::runtime_error.
class Reader {
 public:
  explicit Reader(const std::string& path) : file_(path, std::ios::binary) {
    if (!file_.seekg(0, std::ios::end)) throw std::runtime_error("the file cannot be read");
    left_ = std::uint64_t(file_.tellg());
    file_.seekg(0);
  }
  template <class T>
  std::vector<T> numbers(std::uint64_t count, const std::string& what) {
    if (count > left_ / sizeof(T))
      throw std::runtime_error("the file ends early: wanted " + std::to_string(count * sizeof(T)) +
                               " bytes of " + what + ", got " + std::to_string(left_));
    std::vector<T> values(count);
    if (!file_.read(reinterpret_cast<char*>(values.data()), std::streamsize(count * sizeof(T))))
      throw std::runtime_error("reading " + what + " failed");
    left_ -= count * sizeof(T);
    return values;
  }
  template <class T>
  T number(const std::string& what) {
    return numbers<T>(1, what)[0];
  }
  std::string text(std::uint64_t bytes, const std::string& what) {
    const std::vector<char> characters = numbers<char>(bytes, what);
    return {characters.begin(), characters.end()};
  }
  std::uint64_t left() const { return left_; }

 private:
  std::ifstream file_;
  std::uint64_t left_ = 0;
};

/// No size may be so large that a product of two of them overflows.
static void check_sizes(const Sizes& s) {
  for (const std::uint32_t size : {s.C, s.L, s.H, s.G, s.D, s.F, s.V, s.T_max})
    if (size < 1 || size > 1 << 24)
      throw std::runtime_error("a size: wanted 1 to 16777216, got " + std::to_string(size));
  if (s.D % 2 != 0 || s.H % s.G != 0 || s.L > 4096)
    throw std::runtime_error(
        "sizes: wanted an even D, an H that G divides and at most 4096 blocks");
  if (s.H > (1u << 24) / s.D) throw std::runtime_error("H times D: wanted at most 16777216");
}

/// The matrices, in the order in which a token meets them.
static void read_weights(Reader& reader, Model& model) {
  const auto matrix = [&](std::uint64_t rows, std::uint64_t columns, const char* name) {
    return reader.numbers<float>(rows * columns, name);
  };
  const auto& [C, L, H, G, D, F, V, T_max, tied] = model.sizes;
  model.embedding = matrix(V, C, "the embedding");
  for (std::uint32_t l = 0; l < L; ++l) {
    Block& block = model.blocks.emplace_back();
    block.attention_norm = matrix(1, C, "attention_norm");
    block.w_q = matrix(H * D, C, "w_q");
    block.w_k = matrix(G * D, C, "w_k");
    block.w_v = matrix(G * D, C, "w_v");
    block.w_o = matrix(C, H * D, "w_o");
    block.feed_forward_norm = matrix(1, C, "feed_forward_norm");
    block.w_gate = matrix(F, C, "w_gate");
    block.w_up = matrix(F, C, "w_up");
    block.w_down = matrix(C, F, "w_down");
  }
  model.final_norm = matrix(1, C, "final_norm");
  if (tied == 0) model.head = matrix(V, C, "the head");
}

static void check_ids(const std::vector<int>& ids, const Sizes& sizes) {
  if (ids.empty() || ids.size() > sizes.T_max)
    throw std::runtime_error("the prompt: wanted 1 to " + std::to_string(sizes.T_max) +
                             " tokens, got " + std::to_string(ids.size()));
  for (const int id : ids)
    if (id < 0 || std::uint32_t(id) >= sizes.V)
      throw std::runtime_error("the prompt: wanted ids from 0 to " + std::to_string(sizes.V - 1) +
                               ", got " + std::to_string(id));
}

static Model read_model(const std::string& path) {
  Reader reader(path);
  if (reader.text(8, "the magic") != "T2TWHOLE")
    throw std::runtime_error("wanted a file that ./learn run 10 --export has written");
  const std::uint32_t version = reader.number<std::uint32_t>("the version");
  if (version != 1)
    throw std::runtime_error("the version: wanted 1, got " + std::to_string(version));

  Model model;
  model.sizes = reader.number<Sizes>("the sizes");
  check_sizes(model.sizes);
  model.end = reader.number<std::int32_t>("the end token");
  model.eps = reader.number<float>("eps");
  model.frequencies = reader.numbers<double>(model.sizes.D / 2, "the frequencies");
  read_weights(reader, model);
  for (std::uint32_t id = 0; id < model.sizes.V; ++id)
    model.tokens.push_back(reader.text(reader.number<std::uint32_t>("a length"), "a token"));
  model.prompt = reader.numbers<int>(reader.number<std::uint32_t>("a length"), "the prompt");
  check_ids(model.prompt, model.sizes);
  if (reader.left() != 0)
    throw std::runtime_error("the file has " + std::to_string(reader.left()) + " bytes too many");
  return model;
}

// ---- The parts ----

/// Σ a[i]·b[i]. Sixteen sums side by side: the compiler can keep them in vector registers.
static float dot(const float* a, const float* b, std::size_t n) {
  float sums[16] = {}, sum = 0;
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (std::size_t j = 0; j < 16; ++j) sums[j] += a[i + j] * b[i + j];
  for (const float part : sums) sum += part;
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// y = W·x: y[r] is the dot product of row r of W, [rows, x.size()], with x.
static Floats multiply(const Floats& w, const Floats& x) {
  Floats y(w.size() / x.size());
  for (std::size_t r = 0; r < y.size(); ++r) y[r] = dot(&w[r * x.size()], x.data(), x.size());
  return y;
}

static void add(Floats& x, const Floats& y) {
  for (std::size_t c = 0; c < x.size(); ++c) x[c] += y[c];
}

/// Chapter 02: x divided by the root of its mean square, times a gain for each channel.
static Floats rms_norm(const Floats& x, const Floats& gain, float eps) {
  const float scale = 1 / std::sqrt(dot(x.data(), x.data(), x.size()) / float(x.size()) + eps);
  Floats y(x.size());
  for (std::size_t c = 0; c < x.size(); ++c) y[c] = x[c] * scale * gain[c];
  return y;
}

/// Chapter 03: channels 2i and 2i + 1 of each head are rotated by position · frequencies[i].
static void rope(Floats& x, std::size_t position, const std::vector<double>& frequencies) {
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double angle = double(position) * frequencies[i];
    const float c = float(std::cos(angle)), s = float(std::sin(angle));
    for (std::size_t at = 2 * i; at < x.size(); at += 2 * frequencies.size()) {
      const float a = x[at], b = x[at + 1];
      x[at] = a * c - b * s;
      x[at + 1] = a * s + b * c;
    }
  }
}

/// Chapter 04: the exponential of each score, divided by their sum; the highest is subtracted
/// first, so that nothing overflows.
static void softmax(Floats& scores) {
  const float highest = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& score : scores) sum += score = std::exp(score - highest);
  for (float& score : scores) score /= sum;
}

/// Chapters 04 to 06: each of the H heads of q is compared with all cached keys of its group, and
/// gets the mean of their values, weighted by softmax. Returns [H·D].
static Floats attend(const Floats& q, const Floats& keys, const Floats& values, const Sizes& s) {
  const std::size_t D = s.D, width = std::size_t(s.G) * D, S = keys.size() / width;
  Floats heads(q.size(), 0.0f), scores(S);
  for (std::size_t h = 0; h < s.H; ++h) {
    const std::size_t begin = h / (s.H / s.G) * D;  // where the group's channels begin in a row
    for (std::size_t t = 0; t < S; ++t)
      scores[t] = dot(&q[h * D], &keys[t * width + begin], D) / std::sqrt(float(D));
    softmax(scores);
    for (std::size_t t = 0; t < S; ++t)
      for (std::size_t d = 0; d < D; ++d)
        heads[h * D + d] += scores[t] * values[t * width + begin + d];
  }
  return heads;
}

/// Chapter 07: w_down·(silu(w_gate·x) ⊙ w_up·x).
static Floats feed_forward(const Block& block, const Floats& x) {
  Floats hidden = multiply(block.w_gate, x);
  const Floats up = multiply(block.w_up, x);
  for (std::size_t f = 0; f < hidden.size(); ++f) hidden[f] *= up[f] / (1 + std::exp(-hidden[f]));
  return multiply(block.w_down, hidden);
}

// ---- The model ----

/// Chapter 05: what a sequence leaves for its later tokens.
struct Cache {
  std::vector<Floats> keys, values;  // for each block [tokens seen, G·D]
  std::size_t length = 0;            // tokens seen
};

/// Chapters 08 and 09: one token goes through all blocks. Returns its row of the stream, [C].
static Floats run_token(const Model& model, Cache& cache, int id) {
  const std::size_t C = model.sizes.C;
  const float* row = &model.embedding[std::size_t(id) * C];
  Floats x(row, row + C);  // chapter 01
  cache.keys.resize(model.blocks.size());
  cache.values.resize(model.blocks.size());
  for (std::size_t l = 0; l < model.blocks.size(); ++l) {
    const Block& block = model.blocks[l];
    const Floats seen = rms_norm(x, block.attention_norm, model.eps);
    Floats q = multiply(block.w_q, seen), k = multiply(block.w_k, seen);
    const Floats v = multiply(block.w_v, seen);
    rope(q, cache.length, model.frequencies);
    rope(k, cache.length, model.frequencies);
    cache.keys[l].insert(cache.keys[l].end(), k.begin(), k.end());
    cache.values[l].insert(cache.values[l].end(), v.begin(), v.end());
    add(x, multiply(block.w_o, attend(q, cache.keys[l], cache.values[l], model.sizes)));
    add(x, feed_forward(block, rms_norm(x, block.feed_forward_norm, model.eps)));
  }
  ++cache.length;
  return x;
}

/// A score for every token that could come next, [V].
static Floats logits_of(const Model& model, const Floats& x) {
  return multiply(model.sizes.tied != 0 ? model.embedding : model.head,
                  rms_norm(x, model.final_norm, model.eps));
}

/// The logits after a whole prompt.
static Floats read_prompt(const Model& model, Cache& cache, const std::vector<int>& ids) {
  Floats x;
  for (const int id : ids) x = run_token(model, cache, id);
  return logits_of(model, x);
}

/// Greedy: the id of the highest logit.
static int most_likely(const Floats& logits) {
  for (const float logit : logits)
    if (std::isnan(logit)) throw std::runtime_error("the logits are not numbers (NaN)");
  return int(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// ---- The program ----

/// A token's bytes, without control characters other than line ends and tabs: a terminal would obey
/// them.
static void print_token(const std::string& bytes) {
  for (const char c : bytes)
    if (c == '\n' || c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f))
      std::fputc(c, stdout);
  std::fflush(stdout);
}

static std::vector<int> parse_ids(const std::string& text) {
  std::vector<int> ids;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t used = 0;
    ids.push_back(std::stoi(text.substr(at), &used));
    at += used;
    if (at < text.size() && text[at++] != ',') throw std::invalid_argument("no comma");
  }
  return ids;
}

/// Prints the prompt and up to `most` more tokens: fewer if the model ends the text.
static void continue_text(const Model& model, std::size_t most) {
  for (const int id : model.prompt) print_token(model.tokens[std::size_t(id)]);
  Cache cache;
  Floats logits = read_prompt(model, cache, model.prompt);
  const auto start = std::chrono::steady_clock::now();
  std::size_t said = 0;
  while (said < most) {
    const int id = most_likely(logits);
    if (id == model.end) break;
    print_token(model.tokens[std::size_t(id)]);
    if (++said == most || cache.length == model.sizes.T_max) break;
    logits = logits_of(model, run_token(model, cache, id));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("\n");
  if (said > 1) std::fprintf(stderr, "(%.1f tokens/s)\n", double(said - 1) / seconds.count());
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: whole_model FILE [TOKENS [ID,ID,...]]; 0 tokens: print logits\n");
    return 1;
  }
  try {
    const long most = argc > 2 ? std::stol(argv[2]) : 40;
    if (most < 0) throw std::runtime_error("TOKENS: wanted at least 0");
    Model model = read_model(argv[1]);
    if (argc > 3) check_ids(model.prompt = parse_ids(argv[3]), model.sizes);
    if (most > 0) {
      continue_text(model, std::size_t(most));
    } else {
      Cache cache;
      for (const float logit : read_prompt(model, cache, model.prompt))
        std::printf("%.9g\n", double(logit));
    }
  } catch (const std::invalid_argument&) {
    std::fprintf(stderr, "whole_model: wanted numbers: FILE 40 504,3575,282\n");
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "whole_model: %s: %s\n", argv[1], error.what());
    return 1;
  }
  return 0;
}
