#pragma once

#include <string>

#include "json/json.h"

namespace foretoken {

/// Renders the report of `foretoken bench` as one self-contained HTML page: inline style and SVG,
/// no scripts, nothing fetched; light and dark by the reader's preference; readable on a phone.
///
/// `report` is what `foretoken bench --json` writes:
///
///     {"meta": {"target", "draft", "precision", "kv", "target_cores", "draft_cores",
///     "temperature",
///               "acceptance": "real" | "scripted", ...},
///      "sets": [{"name", "modes": [{
///        "mode",                                    // unique within a set, the same in all sets
///        "tokens_per_s": {"median", "p25", "p75"},  // decode only, over prompts
///        "speedup": {"value", "low", "high"},       // over AR, with its confidence interval
///        "acceptance_length",                       // tokens emitted per round, bonus included
///        "acceptance_per_position": [...],          // accepted / verified, given all before were
///        "hit_rate": {"before_k", "at_k"},          // speculation cache, by depth of the outcome
///        "ttft_ms": {"p50", "p99"},
///        "itl_ms": {"p50", "p99", "histogram": [[edge, count], ...]},  // upper edges, ascending
///        "rounds",
///        "round_us": {"target", "wait", "host"},    // means per round
///        "identical"                                // same tokens as AR: true or false
///      }, ...]}, ...]}
///
/// Anything may be absent (or null) and is then shown as a dash; further entries of "meta" are
/// shown as they are. Text is escaped. Never fails: a value of the wrong type counts as absent.
std::string RenderBenchReport(const Json& report);

}  // namespace foretoken
