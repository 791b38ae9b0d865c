// Three tables for this chapter's program: what G heads of keys and values store, what they
// compute, and the G of published models.
#pragma once

namespace t2t {

/// Parameters and bytes stored, by G, at one model's sizes.
void print_costs();

/// Multiplications and additions for one new token, and bytes of cache read for it, by G.
void print_operations();

/// Published models, with the bytes that one token takes in the caches of all their layers.
void print_models();

}  // namespace t2t
