// Each mistake of the kernels in tests/cuda_faults is named, with its line, thread and block; and
// the stand-in works on afterwards.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <stdexcept>
#include <utility>

#include "cuda_faults/faults.hpp"
#include "support/refuses.hpp"

using namespace t2t;

namespace {

/// "faults.cu:17", the line with this mark.
std::string marked(const std::string& mark) {
  const std::filesystem::path tests =
      std::filesystem::path(T2T_FIXTURES).parent_path().parent_path();
  for (const std::string file : {"faults.cu", "hopper_faults.cu"}) {
    std::ifstream source(tests / "cuda_faults" / file);
    int number = 1;
    for (std::string line; std::getline(source, line); ++number) {
      if (line.ends_with("// mark: " + mark)) return file + ":" + std::to_string(number);
    }
  }
  return "no line is marked " + mark;
}

/// What the launch throws, without the launch's own place and the folders of files.
std::string message(const std::string& fault) {
  try {
    launch_fault(fault);
  } catch (const std::runtime_error& error) {
    const std::string text = std::regex_replace(error.what(), std::regex("/[^ :]*/"), "");
    const auto start = text.find("found->second: ");
    CHECK(text.find("faults.cu:") < 8);
    CHECK(launch_good() == 1);
    return start == std::string::npos ? text : text.substr(start + 15);
  }
  return "nothing is thrown";
}

/// The fault's message: its marked line, the thread and block that notice it, and this.
void check_named(const std::string& fault, const std::string& thread, const std::string& what) {
  CHECK(message(fault) ==
        marked(fault) + ": thread (" + thread + ", 0, 0) of block (0, 0, 0): " + what);
}

}  // namespace

TEST_CASE("a barrier that not all reach is named") {
  check_named("barrier_in_a_branch", "40",
              "waits at one __syncthreads while others wait at another, " +
                  marked("barrier_in_a_branch, the lower"));
  CHECK(message("barrier_and_shuffle") ==
        "block (0, 0, 0) is stuck:\n  24 threads ended; the first is (40, 0, 0)\n  32 threads wait "
        "at __syncthreads, " +
            marked("barrier_and_shuffle, the barrier") +
            "; the first is (0, 0, 0)\n  8 threads wait in a warp operation, " +
            marked("barrier_and_shuffle") + "; the first is (32, 0, 0)");
}

TEST_CASE("a warp operation whose lanes do not fit its mask is named") {
  CHECK(message("shuffle_without_all") ==
        "block (0, 0, 0) is stuck:\n  32 threads ended; the first is (16, 0, 0)\n  32 threads wait "
        "in a warp operation, " +
            marked("shuffle_without_all") + "; the first is (0, 0, 0)");
  check_named("shuffle_left_out", "16",
              "lane 16 takes part in a warp operation that leaves it out");
  check_named("shuffle_from_absent", "15", "lane 0 reads from lane 20, which is not in the mask");
  check_named("shuffle_width", "0", "a shuffle's width is a power of two up to 32, not 12");
}

TEST_CASE("a named barrier with the wrong number or count is named") {
  CHECK(message("named_short") ==
        "block (0, 0, 0) is stuck:\n  32 threads ended; the first is (32, 0, 0)\n  32 threads wait "
        "at barrier 3, " +
            marked("named_short") + "; the first is (0, 0, 0)");
  check_named("named_number", "0", "barriers are numbered 1 to 15 (0 is __syncthreads), not 0");
  check_named("named_half_warp", "0", "a barrier takes whole warps of its block, not 48 threads");
  check_named("named_differing", "32", "barrier 1 waits for 64 threads, here for 32");
}

TEST_CASE("an address that the hardware does not take is named") {
  const std::string used = "an address that is no multiple of ";
  check_named("misaligned_vector", "1", used + "16 is used as a 'const float4'");
  check_named("misaligned_store", "1", used + "16 is used as a 'float4'");
  check_named("null_pointer", "3", "null pointer to 'float'");
  check_named("ldmatrix_misaligned", "1", "ldmatrix wants rows at multiples of 16 bytes");
  check_named("ldmatrix_from_global", "0",
              "ldmatrix reads from what is not shared memory of the kernel");
  check_named("copy_to_misaligned", "0",
              "copy_async_16 writes to an address that is no multiple of 16");
  check_named("copy_from_misaligned", "0",
              "copy_async_16 reads at an address that is no multiple of 16");
  check_named("copy_to_global", "0",
              "copy_async_16 writes to what is not shared memory of the kernel");
}

TEST_CASE("a misuse of a barrier that counts bytes is named") {
  check_named("mbarrier_forgotten", "0", "this mbarrier was not initialized");
  check_named("mbarrier_in_registers", "0", "an mbarrier lies in shared memory of the kernel");
  check_named("every_thread_arrives", "4",
              "arrives at an mbarrier whose phase has had all of its arrivals: 4");
  const std::string line = marked("initialization").substr(marked("initialization").find(':') + 1);
  const auto stuck = [&](const std::string& fault, const std::string& phase,
                         const std::string& lacks) {
    return "block (0, 0, 0) is stuck:\n  384 threads wait for the end of phase " + phase +
           " at the mbarrier of line " + line + ", which lacks " + lacks + ", " + marked(fault) +
           "; the first is (0, 0, 0)";
  };
  CHECK(message("other_parity") == stuck("other_parity", "1", "1 arrivals and 0 bytes"));
  CHECK(message("twice_expected") == stuck("twice_expected", "0", "0 arrivals and 8192 bytes"));
}

TEST_CASE("a misuse of a tile is named") {
  const auto check_block = [](const std::string& fault, const std::string& mark,
                              const std::string& what) {
    CHECK(message(fault) == marked(mark) + ": block (0, 0, 0): " + what);
  };
  check_block("half_expected", "load", "more bytes land at an mbarrier than it was told to expect");
  check_block("load_not_awaited", "load", "the block ends before this copy has landed");
  for (const char* fault : {"store_not_awaited", "store_not_committed"})
    check_block(fault, fault, "the block ends before this store has read its tile");
  check_named("tile_misaligned", "0", "a tile begins at a multiple of 1024 bytes of shared memory");
  check_named("tile_past_the_end", "0",
              "a tile of 8192 bytes reaches beyond the dynamic shared memory of the kernel");
  CHECK(message("fence_forgotten") == "nothing is thrown");  // most runs on a GPU do not show it
  setenv("T2T_PROXIES", "1", 1);
  check_named(
      "fence_forgotten", "0",
      "a store of a tile reads what thread (3, 0, 0) wrote without calling fence_async since");
  unsetenv("T2T_PROXIES");
}

TEST_CASE("a misuse of a warpgroup's products or registers is named") {
  const auto check_ends = [](const std::string& fault, const std::string& end) {
    CAPTURE(fault);
    CHECK(message(fault).starts_with(marked(fault)));
    CHECK(message(fault).ends_with(end));
  };
  check_ends("products_not_begun",
             "begin_products is missing since the warp's last wait, or its beginning");
  check_ends("products_not_committed", "the block ends, and this product was not committed");
  check_ends("products_not_awaited", "the block ends, and nobody waited for this product");
#ifndef __SANITIZE_THREAD__  // which stops at the race; it is told of by itself
  check_ends("tile_overwritten", "what a product reads has changed before the wait for it");
#endif
  check_ends("warps_differ", "the warps of a warpgroup issue different products");
  check_ends("descriptor_leads_out",
             "a product's descriptor leads out of the shared memory of the kernel");
  check_ends("fewer_registers_taken",
             "take_registers<160>, by threads that have 168 registers each");
  for (const auto& [fault, what] :
       {std::pair("one_warp_alone", "products"), {"one_warp_gives", "registers"}})
    CHECK(message(fault).ends_with("the warps of warpgroup 0 end with different numbers of " +
                                   std::string(what)));
  CHECK(
      message("too_many_registers") ==
      "block (0, 0, 0) is stuck:\n  256 threads ended; the first is (0, 0, 0)\n  128 threads wait "
      "for 240 registers each, and the block has only 0 more for each thread of a warp, " +
          marked("too_many_registers") + "; the first is (256, 0, 0)");
}

TEST_CASE("what a GPU does not have is refused on it") {
  const auto refusal = [](const char* card, const char* fault) {
    setenv("T2T_CARD", card, 1);
    const std::string what = message(fault);
    unsetenv("T2T_CARD");
    return what;
  };
  CHECK(refusal("sm_80", "half_expected")
            .ends_with("sm_80 has no mbarriers that count bytes: sm_90 and later have them"));
  CHECK(refusal("sm_120", "half_expected").ends_with("than it was told to expect"));
  CHECK(
      refusal("sm_120", "one_warp_gives").ends_with("sm_120 has no setmaxnreg: only sm_90 has it"));
  CHECK(refusal("sm_100", "products_not_begun")
            .ends_with("sm_100 has no product of a warpgroup: only sm_90 has it"));
}

TEST_CASE("sizes that no GPU takes are refused") {
  const auto refusal = [](auto... sizes) -> std::string {
    try {
      launch_sizes(sizes...);
    } catch (const std::runtime_error& error) {
      const std::string what = error.what();
      return what.substr(what.find("empty_kernel"));
    }
    return "";
  };
  CHECK(refusal(1024u, 1u, 1u, 1u, 232448u) == "");
  CHECK(refusal(0u, 1u, 1u, 1u, 0u) ==
        "empty_kernel: no GPU takes a block of (0, 1, 1) threads: 1 to 1024, 64 in z");
  CHECK(refusal(1025u, 1u, 1u, 1u, 0u).find("(1025, 1, 1)") != std::string::npos);
  CHECK(refusal(1u, 65u, 1u, 1u, 0u).find("(1, 1, 65)") != std::string::npos);
  CHECK(refusal(65536u, 65536u, 1u, 1u, 0u).find("(65536, 1, 65536)") != std::string::npos);
  CHECK(refusal(1u, 1u, 0u, 1u, 0u) ==
        "empty_kernel: no GPU takes a grid of (0, 1, 1) blocks: 1 to "
        "2147483647 in x, to 65535 in y and z");
  CHECK(refusal(1u, 1u, 1u, 65536u, 0u).find("(1, 65536, 1)") != std::string::npos);
  CHECK(refusal(1u, 1u, 1u, 1u, 232449u) ==
        "empty_kernel: 0 bytes of static and 232449 of dynamic "
        "shared memory: a block on sm_90 has at most 232448");
  CHECK(message("much_static_shared") == "52000 bytes of static shared memory: at most 49152");
}

TEST_CASE("T2T_CARD sets the GPU whose shared memory is the limit") {
  const auto refusal = [](const char* card, unsigned bytes) -> std::string {
    setenv("T2T_CARD", card, 1);
    std::string what;
    try {
      launch_sizes(1, 1, 1, 1, bytes);
    } catch (const std::runtime_error& error) {
      what = error.what();
      what = what.substr(what.find("empty_kernel"));
    }
    unsetenv("T2T_CARD");
    return what;
  };
  CHECK(refusal("sm_80", 166912) == "");
  CHECK(refusal("sm_80", 166913) ==
        "empty_kernel: 0 bytes of static and 166913 of dynamic shared memory: a block on sm_80 has "
        "at most 166912");
  for (const char* small : {"sm_86", "sm_89", "sm_120"}) {
    CHECK(refusal(small, 101376) == "");
    CHECK(refusal(small, 101377)
              .ends_with("a block on " + std::string(small) + " has at most 101376"));
  }
  CHECK(refusal("sm_100", 232448) == "");
  CHECK(refusal("H100", 0) ==
        "empty_kernel: T2T_CARD: wanted sm_80, sm_86, sm_89, sm_90, sm_100, sm_120, got 'H100'");
}

TEST_CASE("kernels of one name in two files have their own shared memory") {
  CHECK(launch_good() == 1);
  CHECK(launch_twin() == 1);
}

TEST_CASE("an unknown order of threads is refused") {
  setenv("T2T_ORDER", "backwards", 1);
  REFUSES_AS(launch_good(), "T2T_ORDER: wanted forward, reverse or a number, got 'backwards'",
             std::runtime_error);
  unsetenv("T2T_ORDER");
}
