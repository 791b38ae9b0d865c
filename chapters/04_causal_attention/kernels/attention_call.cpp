#include "04_causal_attention/kernels/attention_call.hpp"

#include <limits>

#include "shapes.hpp"

namespace t2t {

Strides row_major(int T, int heads, int D) { return {long(T) * heads * D, long(heads) * D, D}; }

void expect_sizes(int B, int T, int S, int H, int G, int D, int start) {
  expect(B >= 1, "B", "at least 1", B);
  expect(T >= 1, "T", "at least 1", T);
  expect(S >= 1, "S", "at least 1", S);
  expect(G >= 1, "G", "at least 1", G);
  expect(H >= 1 && H % G == 0, "H", "a multiple of G", H);
  expect(D >= 1, "D", "at least 1", D);
  // A grid has at most 65535 blocks along y and z.
  expect(long(B) * H <= 65535, "B·H", "at most 65535", double(B) * H);
  expect(start >= 0, "start", "at least 0", start);
  // Tiles end at most 128 tokens past the last: their positions must fit an int, too.
  const long last = std::numeric_limits<int>::max() - 128;
  expect(long(start) + T <= last && S <= last, "start + T and S", "below 2^31 - 128",
         double(start) + T);
}

void expect_device(const char* name, const void* memory) {
  expect(memory != nullptr, name, "device memory", 0);
}

}  // namespace t2t
