// A server's counts in the text format that Prometheus reads: a line for each count, after lines
// that describe it.
#pragma once

#include <string>

#include "15_serving/engine/service_counts.hpp"

namespace t2t {

std::string metrics_text(const ServiceCounts& counts);

}  // namespace t2t
