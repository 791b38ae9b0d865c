#include "cuda/device.hpp"

#include <stdexcept>

namespace t2t {

void refuse_upload(std::size_t wanted, std::size_t got) {
  throw std::invalid_argument("upload: the buffer holds " + std::to_string(wanted) +
                              " numbers, got " + std::to_string(got));
}

}  // namespace t2t
