// What --plan prints.
#pragma once

#include "20_split_models/planner/plan.hpp"

namespace t2t {

/// The fastest layouts, with where a step's time and a rank's memory go. Throws as plans does.
void show_layouts(const ModelShape& model, const Cluster& cluster, const Job& job);

/// The fastest layouts of all known models on clusters of three sizes.
void show_choices();

/// Published trainings beside what the formulas predict for their layouts.
void show_published();

}  // namespace t2t
