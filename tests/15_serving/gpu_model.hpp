// A model for the runner on a device.
#pragma once

#include "11_flash_attention/device_models.hpp"

namespace t2t::device_models {

inline const Model& tiny() {
  static const Model one = [] {
    Config config = config_of(Pairing::halves, true);
    config.block.C = 40, config.block.H = 4, config.block.F = 40;
    return model_of(config);
  }();
  return one;
}

}  // namespace t2t::device_models
