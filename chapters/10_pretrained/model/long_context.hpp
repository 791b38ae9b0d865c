// A model run on sequences longer than those it was trained on, with RoPE's frequencies scaled as
// chapter 03's rope_scaling.hpp describes.
//
//   none      the frequencies stay: positions past the trained length are new to the model
//   linear    all frequencies divided by the factor
//   ntk       a larger θ
//   llama3    slow pairs divided by the factor, fast ones kept, with Llama 3.1's limits
//   yarn      the same by another rule, and scores multiplied by yarn_magnitude(factor)²
//
// The model is not trained further, though the papers of YaRN and of linear scaling do so.
#pragma once

#include <string_view>

#include "09_language_model/fast/model.hpp"

namespace t2t {

enum class RopeScaling { none, linear, ntk, llama3, yarn };

/// How a model's context is lengthened.
struct LongContext {
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;  // new length / trained length
};

/// "yarn=2". Throws std::invalid_argument unless text is one of the names above, '=' and a factor
/// from 1 to 1024.
LongContext parse_long_context(std::string_view text);

/// The same weights with scaled frequencies, and with T_max multiplied by the factor. YaRN's factor
/// on scores is multiplied into the weights that compute q: w_q and b_q, or the gain of its heads'
/// norms. Throws std::invalid_argument when the model does not use RoPE or has scaled frequencies
/// already, unless scaling is none, and as chapter 03's functions do.
Model with_long_context(Model model, const LongContext& longer);

}  // namespace t2t
