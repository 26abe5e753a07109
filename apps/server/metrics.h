#pragma once

#include <string>

#include "server/observe/server_stats.h"
#include "server/service.h"

namespace foretoken::server {

/// What /metrics answers: everything counted, in Prometheus' text format.
std::string MetricsText(const Service& service);

/// What /stats answers: the same for people and pages, with rates over the last seconds.
OrderedJson StatsJson(const Service& service);

}  // namespace foretoken::server
