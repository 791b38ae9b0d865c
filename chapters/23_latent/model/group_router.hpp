// The router of DeepSeek-V2 and V3, which lets each token use experts of a few groups only. Experts
// of one group lie on one machine there, which bounds what a token's vector costs to send.
//
//   p      = softmax(scores), or sigmoid(scores)                    of all E experts
//   group  = its largest p (softmax, V2), or the sum of its two largest p + bias (sigmoid, V3)
//   open   = the `open` largest of the groups
//   chosen = the k experts of open groups whose p + bias is largest
//   weight = scale · p of the chosen, or, normalized, scale · p / (the sum over the chosen)
//
// With one group and scale 1 it is chapter 14's router, which it calls. V2-Lite and V3 differ only
// in these settings. llama.cpp adds a group's two largest p for softmax too; the largest alone is
// V2's own rule. DeepSeek-AI 2024, "DeepSeek-V2", section 2.2, and "DeepSeek-V3", section 2.1.2.
#pragma once

#include <cstddef>

#include "14_mixture_of_experts/router.hpp"

namespace t2t {

struct GroupedRouting {
  RouterSettings router;   // k, scoring, normalized
  std::size_t groups = 1;  // of experts that follow one another; divides E (n_group)
  std::size_t open = 1;    // groups that a token may use (topk_group)
  float scale = 1;         // a factor on every weight (routed_scaling_factor)
};

/// Throws std::invalid_argument, naming the value, as chapter 14's expect_router does, unless
/// groups divides E, open is from 1 to groups, open groups hold k experts, and scale is a finite
/// number above 0.
void expect_grouped(const GroupedRouting& routing, std::size_t E, std::size_t bias);

/// The routing of T tokens. The weights are multiplied by scale. Of equal groups and of equal
/// experts, those with the lower index are chosen. A later token changes nothing about an earlier
/// one. Throws as expect_grouped does, when shapes disagree, and, naming the token, for scores that
/// are not finite.
Routed route_in_groups(const Tensor<2>& x,       // [T, C]
                       const Tensor<2>& router,  // [E, C]
                       const GroupedRouting& routing,
                       ConstRow bias = {});  // [E], of the choice alone; or empty

}  // namespace t2t
