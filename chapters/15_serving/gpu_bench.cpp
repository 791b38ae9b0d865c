// Times decode and prompts over pages on a GPU, compared with rungs 5 and 4 of chapter 11, whose
// keys lie one after another. Each result is checked against float64 before and after it is timed.
//
//   15_serving_gpu_bench [--json FILE] [--only TEXT]
//
// The pages of all sequences are shuffled together. L2 is emptied before each call.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "04_causal_attention/gpu_bench/gpu_problem.hpp"
#include "11_flash_attention/kernels/kernels.hpp"
#include "15_serving/kernels/kernels.hpp"
#include "15_serving/kernels/prompts.hpp"
#include "cuda/device.hpp"
#include "cuda/gpu_bench/gpu_report.hpp"
#include "random.hpp"

using namespace t2t;
using std::size_t;

namespace {

constexpr int H = 32, G = 4, D = 128;

/// Tables of B sequences of S positions, over pages in a random order.
std::vector<std::vector<size_t>> shuffled(int B, int S, int page_size) {
  const size_t each = size_t((S + page_size - 1) / page_size);
  std::vector<size_t> order(size_t(B) * each);
  std::iota(order.begin(), order.end(), size_t(0));
  Random random(5);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[size_t(random.next_uniform() * double(i))]);
  std::vector<std::vector<size_t>> tables;
  for (size_t b = 0; b < size_t(B); ++b)
    tables.emplace_back(order.begin() + long(b * each), order.begin() + long((b + 1) * each));
  return tables;
}
PagedPlan plan_of(const std::vector<std::vector<size_t>>& tables, int S, int page_size) {
  const std::vector<int> lengths(tables.size(), S);
  const int at_once = stretches_at_once(lengths, G, paged_blocks(D) * multiprocessors());
  return plan_sequences(tables, lengths, int(tables.size() * tables[0].size()), page_size, at_once);
}

/// The rows [B, S, G, D], where the tables want them: [G, pages, page_size, D].
DeviceBuffer<bf16> in_pages(const std::vector<bf16>& rows, int S, const PagedPlan& plan) {
  std::vector<bf16> store(size_t(G) * plan.pages * plan.page_size * D);
  const long B = long(plan.lengths.size());
#pragma omp parallel for
  for (long b = 0; b < B; ++b)
    for (int s = 0; s < S; ++s)
      for (int g = 0; g < G; ++g) {
        const size_t number = size_t(plan.tables[size_t(plan.table_at[b] + s / plan.page_size)]);
        const size_t to =
            (size_t(g) * plan.pages + number) * plan.page_size + size_t(s % plan.page_size);
        std::copy_n(&rows[((size_t(b) * S + s) * G + g) * D], D, &store[to * D]);
      }
  return DeviceBuffer<bf16>(std::span<const bf16>(store));
}

double tell(Report& report, const Tensors<bf16>& x, const std::string& what, const Times& times,
            double beside) {
  const double speed = 2.0 * sizeof(bf16) * double(x.k.size()) / (times.median / 1000);
  fmt::print("  B={:<3} S={:<6} {:14} {:9.1f} us {:8.0f} GB/s {:5.1f} % of a read", x.B, x.S, what,
             1000 * times.median, speed / 1e9, 100 * speed / report.limits().read);
  fmt::print("{}\n",
             beside > 0 ? fmt::format(" {:5.1f} % of contiguous", 100 * speed / beside) : "");
  report.write(fmt::format(R"("kind": "pages", "what": "{}", "B": {}, "S": {}, {}, "gb_s": {:.1f})",
                           what, x.B, x.S, json(times), speed / 1e9));
  return speed;
}

void run_size(Report& report, int B, int S) {
  if (!report.has_room(fmt::format("B={}, S={}", B, S), 8.0 * B * S * G * D * sizeof(bf16))) return;
  Tensors<bf16> x{B, 1, S, H, G, D, false};
  const AttentionCall<bf16> call = x.call();
  const auto error = [&] { return worst_error(x); };
  const int splits = decode_splits(B * G, S, decode_blocks(D) * multiprocessors());
  DecodeScratch scratch(decode_scratch(call, splits));
  const auto rung_5 = [&] { attend_decode(call, splits, scratch); };
  const std::string size = fmt::format(", B={}, S={}", B, S);
  const auto contiguous = report.timed("contiguous" + size, rung_5, error, flush_l2);
  if (!contiguous) return;
  const double beside = tell(report, x, "contiguous", *contiguous, 0);
  for (const int page_size : {16, 64}) {
    const PagedPlan plan = plan_of(shuffled(B, S, page_size), S, page_size);
    const PagedSequences sequences(plan);
    const DeviceBuffer<bf16> keys = in_pages(x.k, S, plan), values = in_pages(x.v, S, plan);
    DecodeScratch sums(paged_scratch(size_t(B), plan.stretch_at.back(), H, G, D));
    const PagedCall paged{x.on_q.data(), keys.data(), values.data(), x.out.data(), H, G, D};
    x.forget_out();
    const std::string what = fmt::format("pages of {}", page_size);
    const auto attend = [&] { attend_pages(paged, sequences, sums); };
    if (const auto times = report.timed(what + size, attend, error, flush_l2))
      tell(report, x, what, *times, beside);
  }
}

/// B chunks of T new tokens each, the last ones of S.
struct PromptSizes {
  int B, T, S;
};

void tell_prompts(Report& report, const PromptSizes& n, const std::string& what,
                  const Times& times) {
  // Two products of D multiply-adds for each query of a head and each key that it sees.
  const double seen = double(n.T) * (n.S - n.T) + double(n.T) * (n.T + 1) / 2;
  const double tflops = 4.0 * n.B * H * D * seen / (times.median / 1000) / 1e12;
  fmt::print("  B={:<3} T={:<5} S={:<6} {:14} {:9.1f} us {:6.1f} TFLOP/s\n", n.B, n.T, n.S, what,
             1000 * times.median, tflops);
  report.write(fmt::format(
      R"("kind": "prompts", "what": "{}", "B": {}, "T": {}, "S": {}, {}, "tflops": {:.1f})", what,
      n.B, n.T, n.S, json(times), tflops));
}

void run_prompts(Report& report, const PromptSizes& n) {
  Tensors<bf16> x{n.B, n.T, n.S, H, G, D, true};
  const AttentionCall<bf16> call = x.call();
  const auto error = [&] { return worst_error(x); };
  const std::string size = fmt::format(", B={}, T={}, S={}", n.B, n.T, n.S);
  if (const auto times = report.timed(
          "contiguous" + size, [&] { attend_swizzle_async(call); }, error))
    tell_prompts(report, n, "contiguous", *times);
  std::vector<PromptRows> rows;
  for (int b = 0; b < n.B; ++b) rows.push_back({b * n.T, n.T, n.S - n.T});
  for (const int page_size : {16, 64}) {
    const std::vector<std::vector<size_t>> tables = shuffled(n.B, n.S, page_size);
    const PagedPlan plan = plan_of(tables, n.S, page_size);
    const PagedPrompts prompts(plan_prompts(tables, rows, plan.pages, page_size));
    const DeviceBuffer<bf16> keys = in_pages(x.k, n.S, plan), values = in_pages(x.v, n.S, plan);
    const PagedCall paged{x.on_q.data(), keys.data(), values.data(), x.out.data(), H, G, D};
    x.forget_out();
    const std::string what = fmt::format("pages of {}", page_size);
    if (const auto times = report.timed(
            what + size, [&] { attend_prompts(paged, prompts); }, error))
      tell_prompts(report, n, what, *times);
  }
}

void measure(Report& report) {
  if (report.begins("decode over pages, D=128, 32 query heads in 4 groups, L2 emptied"))
    for (const int B : {1, 8, 64})
      for (const int S : {1024, 4096, 16384}) run_size(report, B, S);
  if (report.begins("prompts over pages, D=128, 32 query heads in 4 groups"))
    for (const PromptSizes& n :
         {PromptSizes{1, 128, 1024}, {1, 512, 512}, {1, 512, 8192}, {8, 128, 4096}, {8, 512, 4096}})
      run_prompts(report, n);
}

}  // namespace

int main(int argc, char** argv) { return gpu_bench(argc, argv, measure); }
