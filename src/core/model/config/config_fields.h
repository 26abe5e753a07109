#pragma once

#include <fmt/core.h>

#include <string>
#include <vector>

#include "foretoken/types.h"
#include "json/json_object.h"

namespace foretoken {

// Above any known model, and small enough that no product of sizes overflows 64 bits.
inline constexpr int kMaxHidden = 1 << 16;
inline constexpr int kMaxIntermediate = 1 << 20;
inline constexpr int kMaxLayers = 1 << 10;
inline constexpr int kMaxHeads = 1 << 10;
inline constexpr int kMaxHeadDim = 1 << 10;
inline constexpr int kMaxExperts = 1 << 10;
inline constexpr int kMaxVocabulary = 1 << 22;
inline constexpr int kMaxPositions = 1 << 20;
// What a soft cap of logits may be.
inline constexpr double kLeastSoftCap = 1e-6;
inline constexpr double kMostSoftCap = 1e6;

/// The fields of a model's configuration, read as JsonObject reads them.
class ConfigFields : public JsonObject {
 public:
  ConfigFields(const Json* json, std::string where, Status* status);
  using JsonObject::Path;

  void Refuse(const std::string& what);
  template <typename Arg, typename... Args>
  void Refuse(fmt::format_string<Arg, Args...> format, Arg&& arg, Args&&... args) {
    Refuse(fmt::format(format, std::forward<Arg>(arg), std::forward<Args>(args)...));
  }

  /// The fields of an object within; those of nothing where it is absent or null.
  ConfigFields Within(const char* name);
  const Status& status() const { return *status_; }
  /// Whether there are none.
  bool empty() const { return json_ == nullptr || json_->empty(); }
  /// The fields of another object, named `name`, which outlives what is returned.
  ConfigFields At(const Json& json, const char* name) { return {&json, Path(name), status_}; }
  /// One token or a list of tokens; negative ones mean none.
  std::vector<Token> Tokens(const char* name, int vocabulary);
  /// A list of so many strings; empty where it is absent.
  std::vector<std::string> Strings(const char* name, std::size_t count);
  /// As the field has it, or `otherwise`. Ranges are inclusive.
  int IntOr(const char* name, int low, int high, int otherwise);
  double NumberOr(const char* name, double low, double high, double otherwise);
  bool BoolOr(const char* name, bool otherwise);
  /// Whether the field is there and null. Classes of transformers take such a one for false,
  /// whatever it is where it is absent.
  bool IsNull(const char* name) const;

 private:
  void RefuseMissing(std::string_view name) override;
};

}  // namespace foretoken
