// What the caches of models weigh whose layers differ, and what gpt-oss weighs.
#pragma once

namespace t2t {

/// Cache bytes of published models by formula.
void show_layer_caches();
/// Parameters and bytes of gpt-oss-20b by part, of all and of what a token uses.
void show_gpt_oss_weights();

}  // namespace t2t
