#pragma once

#include <string>

#include "apps/foretoken/server/models/model_registry.h"
#include "apps/foretoken/server/service.h"

namespace foretoken::server {

/// What /metrics answers: everything counted, by model, in Prometheus' text format.
std::string MetricsText(const ModelRegistry& models);

/// Blocks of keys and values, as `/stats` and `/props` have them.
Json KvJson(const KvUsage& usage);

/// What /stats answers: the same of one model for people and pages, with rates over the last
/// seconds.
Json StatsJson(const Service& service, const OutcomeCounts& outcomes);

}  // namespace foretoken::server
