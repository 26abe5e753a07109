#pragma once

#include <cstdint>
#include <string_view>

#include "text/jinja/workspace.h"

namespace foretoken::jinja {

/// Reads the arguments of a call of something built in, parameter by parameter, in their order.
class Parameters {
 public:
  /// `function` is how errors call it.
  Parameters(Workspace* workspace, std::string_view function, Arguments* arguments)
      : workspace_(workspace), function_(function), arguments_(arguments) {}

  bool Has(std::string_view name) const;
  Value Optional(std::string_view name, Value otherwise = None{});
  Value Required(std::string_view name);
  std::int64_t Integer(std::string_view name, std::int64_t otherwise);
  bool Flag(std::string_view name, bool otherwise);
  /// A string that must be there.
  Value RequiredText(std::string_view name);
  /// A string or none.
  Value OptionalText(std::string_view name, Value otherwise = None{});

  /// Refuses what nobody asked for. False: it, or something before, was wrong.
  bool Close();

 private:
  bool Take(std::string_view name, Value* value);
  void Refuse(std::string_view name, std::string_view wanted, const Value& value);

  Workspace* workspace_;
  std::string_view function_;
  Arguments* arguments_;
  std::size_t next_ = 0;  // The next of the positional arguments.
};

}  // namespace foretoken::jinja
