#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/options/options.h"
#include "apps/lab/plan/plan_views.h"
#include "apps/lab/study/roofline.h"
#include "core/model/config/named_shapes.h"
#include "core/model/families/read_config.h"
#include "core/model/open_checkpoint.h"
#include "core/prediction/fanout_solver.h"
#include "core/weights/checkpoint.h"
#include "json/json.h"

namespace foretoken {
namespace {

struct NamedDevice {
  const char* name;
  const char* what;
  DeviceRoof roof;
};
constexpr std::array kDevices = {
    NamedDevice{"sssd", "the SSSD paper's 48 GB GPU, as it was measured", {165e12, 0.95e12}},
    NamedDevice{"h100", "80 GB H100, data sheet", {989.5e12, 3.35e12}},
    NamedDevice{"h200", "141 GB H200, data sheet", {989.5e12, 4.8e12}},
};

// The speculation lengths that SSSD chooses from, and some beyond.
constexpr std::array kLengths = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64};

struct RooflineSetting {
  std::string model_name;
  ModelShape shape;
  NamedDevice device;
  std::vector<double> contexts;
  std::vector<std::pair<int, double>> accepted;  // Tokens a step by s_q; empty: by acceptance.
  std::vector<double> acceptance = {0.7};        // The acceptance of a chain, by position.
  int batch = 8;
  int ranks = 1;
};

// The mean size of all weights together, as the file has them.
double BytesOfWeight(const Checkpoint& checkpoint) {
  double bytes = 0;
  double weights = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    bytes += static_cast<double>(tensor.bytes());
    weights += static_cast<double>(tensor.elements());
  }
  return bytes / weights;
}

Result<ModelShape> ResolveShape(const PlanRooflineOptions& options) {
  ModelConfig config;
  double weight_bytes = 2;
  std::error_code error;
  if (std::filesystem::exists(options.model, error)) {
    FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, OpenCheckpoint(options.model, ""));
    FT_ASSIGN_OR_RETURN(config, ReadModelConfig(checkpoint));
    if (checkpoint.quantized()) weight_bytes = BytesOfWeight(checkpoint);
  } else {
    FT_ASSIGN_OR_RETURN(config, NamedShape(options.model));
  }
  const LayerSpec& layer = config.layers.front();
  if (std::ranges::any_of(config.layers, [&layer](const LayerSpec& other) {
        return other.mlp.routing != layer.mlp.routing || other.mlp.has_shared();
      })) {
    return Invalid(
        "{}: the roofline is one of layers that are alike and have no expert that all rows share",
        options.model);
  }
  return ModelShape{.layers = config.layer_count(),
                    .hidden = config.hidden,
                    .query_heads = config.first_attention().heads,
                    .kv_heads = config.first_attention().kv_heads,
                    .head_dim = config.first_attention().head_dim,
                    .mlp = layer.mlp.intermediate,
                    .experts = layer.mlp.routing.experts,
                    .chosen = layer.mlp.routing.chosen,
                    .vocabulary = config.vocabulary,
                    .weight_bytes = options.weight_bytes.value_or(weight_bytes),
                    .kv_bytes = options.kv_bytes};
}

Result<NamedDevice> ResolveDevice(const PlanRooflineOptions& options) {
  if (options.flops > 0 || options.bandwidth > 0) {
    if (!(options.flops > 0 && options.bandwidth > 0)) {
      return InvalidInput("--flops and --bandwidth describe a device together: give both");
    }
    if (!options.device.empty()) {
      return InvalidInput("--device excludes --flops and --bandwidth: give one or the others");
    }
    return NamedDevice{.what = "device", .roof = {options.flops, options.bandwidth}};
  }
  std::vector<std::string_view> known;
  for (const NamedDevice& device : kDevices) {
    if (options.device == device.name || options.device.empty()) return device;
    known.emplace_back(device.name);
  }
  return Invalid("there is no device '{}': choose one of {}, or give --flops and --bandwidth",
                 options.device, fmt::join(known, ", "));
}

Result<RooflineSetting> Resolve(const PlanRooflineOptions& options, const PlanNumbers& numbers) {
  RooflineSetting setting{.model_name = options.model, .ranks = options.ranks};
  if (numbers.batch > 0) setting.batch = numbers.batch;
  if (!numbers.acceptance.empty()) {
    FT_ASSIGN_OR_RETURN(setting.acceptance, ParseNumbers(numbers.acceptance, "--acceptance", 0, 1));
  }
  FT_ASSIGN_OR_RETURN(setting.shape, ResolveShape(options));
  FT_ASSIGN_OR_RETURN(setting.device, ResolveDevice(options));
  setting.device.roof.mask_bytes = options.mask_bytes;
  FT_ASSIGN_OR_RETURN(setting.contexts, ParseNumbers(options.contexts, "--contexts", 0, 1e7));
  if (!options.accepted.empty()) {
    FT_ASSIGN_OR_RETURN(setting.accepted, ParsePoints(options.accepted, "--accepted"));
    for (std::size_t i = 1; i < setting.accepted.size(); ++i) {
      if (setting.accepted[i].first <= setting.accepted[i - 1].first) {
        return InvalidInput("--accepted: the speculation lengths must ascend");
      }
    }
  }
  return setting;
}

// Tokens that a step with s_q rows a sequence emits.
double Accepted(const RooflineSetting& setting, int s_q) {
  const auto& points = setting.accepted;
  if (points.empty()) return ExpectedTokens(OutcomeNodes(setting.acceptance, s_q - 1));
  std::pair<double, double> low = {1, 1};  // Plain decoding.
  for (const auto& [x, y] : points) {
    if (s_q <= x) {
      return x == low.first ? y
                            : low.second + (y - low.second) * (s_q - low.first) / (x - low.first);
    }
    low = {x, y};
  }
  return low.second;
}

PassShape PassAt(const RooflineSetting& setting, double s_q, double context) {
  return {.batch = static_cast<double>(setting.batch),
          .speculation = s_q,
          .context = context,
          .ranks = setting.ranks};
}

Json OpsJson(const RooflineSetting& setting) {
  Json ops = Json::array();
  const PassShape pass = PassAt(setting, 1, setting.contexts.front());
  for (const RooflineOp op : kRooflineOps) {
    const OpCost cost = RooflineCost(op, setting.shape, pass, setting.device.roof.mask_bytes);
    Json entry = {{"op", RooflineOpName(op)},
                  {"flops", cost.flops},
                  {"read_bytes", cost.read},
                  {"write_bytes", cost.write},
                  {"flops_per_byte", cost.intensity()},
                  {"us", cost.Seconds(setting.device.roof) * 1e6}};
    if (op != RooflineOp::kAttention) {
      const auto knee = KneeRows(op, setting.shape, setting.ranks, setting.device.roof);
      entry["knee_rows"] = knee ? Json(*knee) : Json();
    }
    ops.push_back(std::move(entry));
  }
  return ops;
}

Json PassesJson(const RooflineSetting& setting) {
  Json passes = Json::array();
  for (const double context : setting.contexts) {
    const double plain =
        RooflinePass(setting.shape, PassAt(setting, 1, context), setting.device.roof).total();
    for (const int s_q : kLengths) {
      const PassShape pass = PassAt(setting, s_q, context);
      const PassSeconds seconds = RooflinePass(setting.shape, pass, setting.device.roof);
      const double tokens = Accepted(setting, s_q);
      passes.push_back(
          {{"context", context},
           {"s_q", s_q},
           {"linear_ms", seconds.linear * 1e3},
           {"attention_ms", seconds.attention * 1e3},
           {"ms", seconds.total() * 1e3},
           {"cost", seconds.total() / plain},
           {"tokens", tokens},
           {"speedup", RooflineSpeedup(setting.shape, pass, setting.device.roof, tokens)}});
    }
  }
  return passes;
}

// Rows of a sequence that are about free: only its first, where each may read other experts.
double FreeRows(const RooflineSetting& setting) {
  return setting.shape.experts > 0 ? 1 : setting.device.roof.knee() / setting.batch;
}

// Where the tokens of a step are from.
std::string TokensText(const RooflineSetting& setting) {
  if (!setting.accepted.empty()) return "the given accepted tokens";
  return fmt::format("a chain at acceptance {:g}", fmt::join(setting.acceptance, ", "));
}

Json MakeReport(const RooflineSetting& setting) {
  return {{"kind", "roofline"},
          {"meta",
           {{"model", setting.model_name},
            {"device", setting.device.what},
            {"flops_per_s", setting.device.roof.flops},
            {"bytes_per_s", setting.device.roof.bytes_per_second},
            {"knee", setting.device.roof.knee()},
            {"free_s_q", FreeRows(setting)},
            {"batch", setting.batch},
            {"ranks", setting.ranks},
            {"tokens", TokensText(setting)}}},
          {"ops", OpsJson(setting)},
          {"passes", PassesJson(setting)}};
}

std::string RooflineText(const Json& report) {
  const Json& meta = report["meta"];
  const auto number = [&meta](const char* key) { return meta[key].get<double>(); };
  std::string text = fmt::format(
      "{} on {} ({:.0f} TFLOP/s, {:.0f} GB/s)\n"
      "knee: {:.0f} FLOPs per byte; batch {} leaves about {:.0f} rows a sequence free\n\n",
      meta["model"].get<std::string>(), meta["device"].get<std::string>(),
      number("flops_per_s") / 1e12, number("bytes_per_s") / 1e9, number("knee"), number("batch"),
      number("free_s_q"));
  TextTable ops(
      {"of a layer at s_q 1", "MFLOP", "read", "written", "FLOPs:IO", "time", "knee rows"});
  for (const Json& op : report["ops"]) {
    const Json knee = op.value("knee_rows", Json("by context"));
    ops.Add({op["op"], FormatNumber(op["flops"].get<double>() / 1e6), FormatBytes(op["read_bytes"]),
             FormatBytes(op["write_bytes"]), FormatNumber(op["flops_per_byte"]),
             FormatDuration(op["us"].get<double>() * 1e3),
             knee.is_number() ? fmt::format("{:.0f}", knee.get<double>())
             : knee.is_null() ? std::string("none")
                              : knee.get<std::string>()});
  }
  TextTable passes({"context", "s_q", "linear", "attention", "pass", "cost", "tokens", "speed-up"});
  for (const Json& pass : report["passes"]) {
    const auto ms = [&](const char* key) { return FormatDuration(pass[key].get<double>() * 1e6); };
    passes.Add({fmt::format("{:.0f}", pass["context"].get<double>()),
                fmt::format("{}", pass["s_q"].get<int>()), ms("linear_ms"), ms("attention_ms"),
                ms("ms"), fmt::format("{:.2f}x", pass["cost"].get<double>()),
                fmt::format("{:.2f}", pass["tokens"].get<double>()),
                fmt::format("{:.2f}x", pass["speedup"].get<double>())});
  }
  return text + ops.Render(2) + "\n" + passes.Render(2);
}

}  // namespace

void AddPlanRooflineOptions(CLI::App* app, PlanRooflineOptions* options) {
  const OptionGroup add(app, "Roofline");
  add("--model-shape", &options->model, "MODEL",
      "A shape's name, like llama-8b (default), or a model's folder or GGUF file");
  add("--device", &options->device, "NAME", "sssd (the SSSD paper's GPU; default), h100 or h200");
  add("--flops", &options->flops, "X", "FLOP/s of another device: 165e12");
  add("--bandwidth", &options->bandwidth, "X", "Its memory's bytes/s: 0.95e12");
  add("--weight-bytes", &options->weight_bytes, "X",
      "Of a weight (default: those of a model with quantised weights, else 2)")
      ->check(Between(0.1, 8.0));
  add("--kv-bytes", &options->kv_bytes, "X",
      "Of a number in keys and values (default 2; 1.125 with --kv q8_0)")
      ->check(Between(0.1, 8.0));
  add("--mask-bytes", &options->mask_bytes, "X", "Of an element of the attention mask (default 1)")
      ->check(Between(0.0, 8.0));
  add("--ranks", &options->ranks, "N", "Tensor parallelism (default 1)")->check(Between(1, 1024));
  add("--contexts", &options->contexts, "LIST", "Context lengths to show (default 1024,32768)");
  add("--accepted", &options->accepted, "LIST",
      "Tokens a step by speculation length, measured: 4:2.1,16:3.0,32:3.3 (default: a chain at "
      "--acceptance, or 0.7)");
}

Result<int> RunPlanRoofline(const PlanRooflineOptions& options, const PlanNumbers& numbers,
                            const ReportFiles& files) {
  FT_ASSIGN_OR_RETURN(const RooflineSetting setting, Resolve(options, numbers));
  const Json report = MakeReport(setting);
  FT_RETURN_IF_ERROR(WriteReport(files, report, RooflineText(report)));
  return 0;
}

}  // namespace foretoken
