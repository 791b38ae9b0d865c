#include "cuda_on_cpu/order.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

namespace t2t::stand_in {

Order Order::wanted() {
  const char* wanted = std::getenv("T2T_ORDER");
  const std::string name = wanted == nullptr ? "forward" : wanted;
  Order order;
  if (name == "reverse") {
    order.kind_ = Kind::reverse;
  } else if (name != "forward") {
    char* end = nullptr;
    order.kind_ = Kind::random;
    order.seed_ = static_cast<unsigned>(std::strtoul(name.c_str(), &end, 10));
    order.random_.seed(order.seed_);
    if (name.empty() || *end != '\0') {
      throw std::runtime_error("T2T_ORDER: wanted forward, reverse or a number, got '" + name +
                               "'");
    }
  }
  return order;
}

std::vector<std::size_t> Order::of(std::size_t count) const {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (kind_ == Kind::reverse) std::reverse(order.begin(), order.end());
  if (kind_ == Kind::random) {
    std::mt19937 random(seed_);
    for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  }
  return order;
}

std::size_t Order::choose(std::size_t count) {
  if (kind_ == Kind::random) return random_() % count;
  return kind_ == Kind::forward ? 0 : count - 1;
}

bool Order::decide(unsigned many) {
  return kind_ == Kind::random ? random_() % many == 0 : kind_ == Kind::reverse;
}

}  // namespace t2t::stand_in
