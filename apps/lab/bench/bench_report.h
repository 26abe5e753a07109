#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "apps/foretoken/common/bench_stats.h"
#include "foretoken/request.h"
#include "json/json.h"

namespace foretoken {

/// What a mode wrote, judged by the model itself. With a lossy rule only.
struct WrittenTexts {
  int tokens = 0;
  double perplexity = 0;  ///< The perplexity of the outputs, after their prompts, at temperature 1.
  int asked = 0;          ///< Texts whose answer is known.
  int right = 0;          ///< Texts that end with the same number as their answer.
};

/// What a mode did on the prompts of one set. A group is `--batch` prompts in flight together.
struct ModeResult {
  /// "ar", "sd", "ssd"; "ar@all" and "sd@all" run on the draft's cores too; "sd:NAME" with that one
  /// of several drafters.
  std::string label;
  std::string drafter;  ///< Which one; empty where drafters are not compared.
  Mode mode = Mode::kAr;
  std::vector<std::vector<Token>> outputs;  ///< Per prompt, for the comparison with AR.
  std::vector<std::string> texts;           ///< The same as text.
  std::vector<double> tokens_per_second;    ///< Per group, decoding only; 0: a single token.
  std::vector<double> full_batch_rates;     ///< The same while the whole group was decoding.
  std::vector<double> ttft_ns;              ///< Per prompt.
  std::vector<double> token_gaps_ns;
  std::vector<double> burst_gaps_ns;
  RequestStats total;
  double mean_context = 0;  ///< Tokens in the KV cache, averaged over the output.
  EngineStats engine;
  std::optional<PlannerReport> planner;  ///< Mode auto: since the engine began.
  std::optional<WrittenTexts> written;

  /// Adds the generations of one group.
  void Add(const std::vector<Generation>& group);
};

struct SetResult {
  std::string name;
  bool chat = false;
  int too_long = 0;
  std::vector<ModeResult> modes;
};

/// Figures that are derived from one mode's result and that of AR.
struct ModeFigures {
  double median = 0;
  double p25 = 0;
  double p75 = 0;
  std::optional<double> read_gb_per_s;  ///< Weights and KV, while decoding; of AR at batch 1 only.
  std::optional<Interval> speedup;
  std::optional<bool> identical;  ///< Absent for AR, without AR, and where nothing says it must be.
  int first_different_prompt = -1;
};

/// What all sets have in common.
struct BenchContext {
  bool scripted = false;
  /// Rejection: modes sample one distribution and need not emit the same.
  bool same_distribution_only = false;
  bool lossy = false;  ///< A rule accepts what the model did not choose.
  int batch = 1;
  std::size_t weight_bytes = 0;  ///< Read per pass over one row.
  std::size_t kv_bytes_per_token = 0;

  /// Whether every mode must emit AR's tokens.
  bool promises_equality() const { return !scripted && !same_distribution_only && !lossy; }
};

ModeFigures ComputeFigures(const SetResult& set, const ModeResult& mode,
                           const BenchContext& context);

/// The report's "sets". Of what it has, the page (report.html) draws
///
///     [{"name", "modes": [{
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
///      }, ...]}, ...]
///
/// and shows what is absent, null or of another type as a dash.
Json SetsJson(const std::vector<SetResult>& sets, const BenchContext& context);

/// A sentence for every mode with a draft that was slower than ar on a set.
std::vector<std::string> SlowModes(const std::vector<SetResult>& sets, const BenchContext& context);

/// What each figure means, for the report's "definitions".
Json Definitions();

/// The tables of one set for a terminal, at most 100 columns wide.
std::string RenderSet(const SetResult& set, const BenchContext& context);

}  // namespace foretoken
