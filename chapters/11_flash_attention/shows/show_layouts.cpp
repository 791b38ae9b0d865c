#include "11_flash_attention/shows/show_layouts.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "11_flash_attention/kernels/async_tiles.hpp"
#include "program/print.hpp"

namespace t2t {

void show_fragment() {
  print_section("Which lane of a warp holds which element of a product [16, 8]");
  Table table({">row", ">column 0", ">1", ">2", ">3", ">4", ">5", ">6", ">7"});
  for (const int r : {0, 1, 2, 7, 8, 9, 15}) {
    std::vector<std::string> cells = {std::to_string(r)};
    for (int c = 0; c < 8; ++c)
      cells.push_back(fmt::format("{} d[{}]", r % 8 * 4 + c / 2, r / 8 * 2 + c % 2));
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
  print_paragraph("\"5 d[1]\": d[1] of lane 5. Rows 3 to 6 and 10 to 14 follow the same pattern.");
}

void show_swizzle() {
  print_section("Where chunk 2 of 8 rows lies in shared memory, D = 64");
  const auto banks = [](int place) {  // place: in numbers of 2 bytes; a bank is 4 bytes wide
    return fmt::format("{:>2} to {:>2}", place / 2 % 32, place / 2 % 32 + 3);
  };
  Table table(
      {">row r", ">in order: banks", ">r in bits", ">010 XOR r", ">place", ">swizzled: banks"});
  for (int r = 0; r < 8; ++r) {
    const int place = swizzled<64>(r, 2) / 8 % 8;
    table.add({std::to_string(r), banks(r * 64 + 2 * 8), fmt::format("{:03b}", r),
               fmt::format("{:03b}", place), std::to_string(place), banks(swizzled<64>(r, 2))});
  }
  table.print();
}

}  // namespace t2t
