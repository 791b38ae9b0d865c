// Tables of what latent attention stores and computes, by formula.
#pragma once

namespace t2t {

/// Elements and bytes that published models cache for a token, and for 131,072 tokens.
void show_model_caches();

/// Operations for each cached position in DeepSeek-V3, in three forms.
void show_operations();

}  // namespace t2t
