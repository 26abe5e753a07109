#include "core/model/config/rope_config.h"

#include <algorithm>
#include <cmath>

#include "base/numbers/portable_math.h"
#include "base/text/printable.h"

namespace foretoken {
namespace {

using Kind = RopeScaling::Kind;

constexpr double kMostTheta = 1e12;
constexpr double kMostFactor = 1e6;
// A frequency divided by this turns nothing.
constexpr double kStill = 1e30;
constexpr std::string_view kProportional = "proportional";

// GGUF files have such numbers as float32, and a file that is made of a folder turns as the folder
// does.
double AsFile(double number) { return double{static_cast<float>(number)}; }

std::vector<double> ReadFactors(ConfigFields& rope, const char* name, int dims) {
  const Json* list = rope.Find(name);
  const std::size_t wanted = dims / 2;
  std::vector<double> factors;
  bool good = list != nullptr && list->is_array() && list->size() == wanted;
  for (std::size_t i = 0; good && i < wanted; ++i) {
    const Json& item = (*list)[i];
    good = item.is_number() && item.get<double>() > 0 && item.get<double>() < 10 * kStill;
    if (good) factors.push_back(AsFile(item.get<double>()));
  }
  if (!good) rope.Refuse("{} must be {} positive numbers", name, wanted);
  return factors;
}

void ReadLlama3(ConfigFields& rope, RopeScaling* scaling) {
  scaling->low_frequency_factor = rope.Number("low_freq_factor", 1e-6, kMostFactor);
  scaling->high_frequency_factor = rope.Number("high_freq_factor", 1e-6, kMostFactor);
  if (!(scaling->low_frequency_factor < scaling->high_frequency_factor)) {
    rope.Refuse("low_freq_factor must be below high_freq_factor");
  }
}

// YaRN (arXiv 2309.00071), with the attention factor of its section 3.4 or the ratio of two of
// them.
void ReadYarn(ConfigFields& rope, RopeScaling* scaling) {
  scaling->beta_fast = rope.NumberOr("beta_fast", 1e-6, kMostFactor, scaling->beta_fast);
  scaling->beta_slow = rope.NumberOr("beta_slow", 1e-6, kMostFactor, scaling->beta_slow);
  scaling->truncate = rope.BoolOr("truncate", true);
  const auto stretched = [&](double by) {
    return scaling->factor <= 1 ? 1.0 : 0.1 * by * PortableLog(scaling->factor) + 1.0;
  };
  const double mscale = rope.NumberOr("mscale", 0, kMostFactor, 0);
  const double all_dims = rope.NumberOr("mscale_all_dim", 0, kMostFactor, 0);
  const double usual =
      mscale > 0 && all_dims > 0 ? stretched(mscale) / stretched(all_dims) : stretched(1);
  scaling->attention_factor = AsFile(rope.NumberOr("attention_factor", 1e-6, kMostFactor, usual));
}

// Factors for texts within the original context and for longer ones. A row's rotation may depend on
// its position alone, not on how long its text has become, so one list serves the model: the long
// one where it is used for a longer context than the original one.
void ReadLongrope(ConfigFields& rope, const Context& context, RopeSpec* spec) {
  RopeScaling* scaling = &spec->scaling;
  const int dims = spec->dims;
  const int original = scaling->original_positions;
  const bool longer = context.used > original;
  const auto of_short = ReadFactors(rope, "short_factor", dims);
  const auto of_long = ReadFactors(rope, "long_factor", dims);
  scaling->factors = longer ? of_long : of_short;
  const double factor =
      rope.NumberOr("factor", 1e-6, kMostFactor, static_cast<double>(context.made_for) / original);
  const double usual =
      factor <= 1 ? 1.0
                  : std::sqrt(1 + PortableLog(factor) / PortableLog(static_cast<double>(original)));
  scaling->attention_factor = AsFile(rope.NumberOr("attention_factor", 1e-6, kMostFactor, usual));
}

// The leading pairs turn as they would in a head of which all do, the others do not.
void ReadProportional(ConfigFields& rope, const Context& context, RopeSpec* spec) {
  const double share = rope.NumberOr("partial_rotary_factor", 0, 1, context.share);
  const double factor = rope.NumberOr("factor", 1e-6, kMostFactor, 1);
  spec->scaling.kind = Kind::kFactors;
  const int turning = static_cast<int>(share * spec->dims) / 2;
  for (int pair = 0; pair < spec->dims / 2; ++pair) {
    spec->scaling.factors.push_back(pair < turning ? factor : kStill);
  }
}

std::string TypeOf(ConfigFields& rope) {
  std::string type = "default";
  rope.String("type", &type);
  rope.String("rope_type", &type);
  return type;
}

// The rotation of an object such as rope_parameters alone; what that leaves out is as in `usual`,
// whose dimensions it does not change.
RopeSpec ReadRopeParameters(ConfigFields& rope, const Context& context, const RopeSpec& usual) {
  RopeSpec spec = usual;
  spec.theta = rope.NumberOr("rope_theta", 1.0, kMostTheta, spec.theta);
  const std::string type = TypeOf(rope);
  RopeScaling& scaling = spec.scaling;
  const int within =
      rope.IntOr("original_max_position_embeddings", 1, kMaxPositions, context.made_for);
  scaling.original_positions = context.first > 0 ? context.first : within;
  if (type == "default") return spec;
  if (type == "longrope" || type == "su") {
    scaling.kind = Kind::kFactors;
    ReadLongrope(rope, context, &spec);
    return spec;
  }
  if (type == "factors") {
    scaling.kind = Kind::kFactors;
    scaling.factors = ReadFactors(rope, "factors", spec.dims);
    return spec;
  }
  if (type == kProportional) {
    ReadProportional(rope, context, &spec);
    return spec;
  }
  if (type == "linear") scaling.kind = Kind::kLinear;
  if (type == "llama3") scaling.kind = Kind::kLlama3;
  if (type == "yarn") scaling.kind = Kind::kYarn;
  // It stretches nothing before the end of the context that the model has anyway.
  if (type == "dynamic") return spec;
  if (scaling.kind == Kind::kNone) {
    rope.Refuse(
        "is of type {}, but only default, linear, dynamic, llama3, yarn, longrope and proportional "
        "are supported",
        Printable(type));
    return spec;
  }
  scaling.factor = rope.Number("factor", 1.0, kMostFactor);
  if (scaling.kind == Kind::kLlama3) ReadLlama3(rope, &scaling);
  if (scaling.kind == Kind::kYarn) ReadYarn(rope, &scaling);
  return spec;
}

}  // namespace

RopeSpec ReadRopeOfLayers(ConfigFields& rope, const Context& context, const RopeSpec& usual) {
  if (!rope.BoolOr("truncate", true)) {
    rope.Refuse(
        "has truncate false, which transformers does not read where a rotation is said of "
        "one type of layers: leave it out");
  }
  return ReadRopeParameters(rope, context, usual);
}

RopeSpec ReadRope(ConfigFields& fields, int head_dim, const Context& context) {
  RopeSpec usual;
  Context known = context;
  known.first = fields.IntOr("original_max_position_embeddings", 1, kMaxPositions, 0);
  usual.theta = fields.NumberOr("rope_theta", 1.0, kMostTheta, usual.theta);
  const double share = fields.NumberOr("partial_rotary_factor", 0.0, 1.0, 1.0);
  known.share = share;
  const auto read = [&](const char* name) {
    ConfigFields rope = fields.Within(name);
    double part = rope.NumberOr("partial_rotary_factor", 0.0, 1.0, share);
    if (TypeOf(rope) == kProportional) part = 1;
    usual.dims = fields.IntOr("rotary_dims", 2, head_dim, static_cast<int>(head_dim * part));
    if (usual.dims < 2 || usual.dims % 2 != 0) {
      fields.Refuse(
          "partial_rotary_factor {} of heads of {} rotates {} numbers, but must rotate an even "
          "number of at least 2",
          part, head_dim, usual.dims);
      usual.dims = 2;
    }
    return ReadRopeParameters(rope, known, usual);
  };
  const bool older = !fields.Within("rope_scaling").empty();
  const RopeSpec spec = read(older ? "rope_scaling" : "rope_parameters");
  if (older && !fields.Within("rope_parameters").empty() && read("rope_parameters") != spec) {
    fields.Refuse(
        "rope_scaling and rope_parameters say different things: put all that is meant into "
        "rope_parameters, and take rope_scaling out");
  }
  return spec;
}

}  // namespace foretoken
