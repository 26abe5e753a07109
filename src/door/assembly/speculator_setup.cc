#include "door/assembly/speculator_setup.h"

#include <fmt/format.h>

#include <climits>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/text/utf8.h"
#include "base/threads/cores.h"
#include "json/json_object.h"
#include "json/read_json_object.h"

namespace foretoken {
namespace {

// Calls `field` with each field's name and value. The writer and the reader both ask here.
template <typename Field>
void ForEachField(auto& setup, Field& field) {
  auto& draft = setup.draft;
  auto& source = draft.source;
  field("path", source.path);
  field("synthetic", source.synthetic);
  field("weights", source.weights);
  field("context", source.context);
  field("own_drafter", source.own_drafter);
  field("ranking", source.draft_vocabulary.ranking);
  field("most", source.draft_vocabulary.most);
  field("target", setup.target);
  field("cores", draft.cores);
  field("precision", draft.precision);
  field("kv", draft.kv);
  field("window", draft.window);
}

template <typename Field>
void ForEachFieldOfWindow(auto& window, Field& field) {
  field("positions", window.positions);
  field("anchors", window.anchors);
}

class Writer {
 public:
  void operator()(std::string_view name, int value) { json_[name] = value; }
  // A path may be any bytes and JSON holds characters: each byte becomes that of the same code.
  void operator()(std::string_view name, std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) AppendUtf8(static_cast<unsigned char>(byte), &text);
    json_[name] = std::move(text);
  }
  void operator()(std::string_view name, const CoreSet& cores) {
    (*this)(name, FormatCores(cores));
  }
  void operator()(std::string_view name, std::optional<int> value) {
    if (value) json_[name] = *value;
  }
  void operator()(std::string_view name, std::optional<Precision> precision) {
    if (precision) (*this)(name, PrecisionName(*precision));
  }
  void operator()(std::string_view name, std::optional<KvFormat> kv) {
    if (kv) (*this)(name, KvFormatName(*kv));
  }
  void operator()(std::string_view name, const std::optional<DraftWindow>& window) {
    if (!window) return;
    Writer fields;
    ForEachFieldOfWindow(*window, fields);
    json_[name] = std::move(fields.json_);
  }

  std::string text() const { return json_.dump(); }

 private:
  Json json_ = Json::object();
};

class Reader {
 public:
  explicit Reader(JsonObject object) : object_(std::move(object)) {}

  // Whoever uses a number says in which range it must be.
  void operator()(std::string_view name, int& value) {
    object_.Int(name, INT_MIN, INT_MAX, &value);
  }
  void operator()(std::string_view name, std::optional<int>& value) {
    if (object_.Has(name)) (*this)(name, value.emplace());
  }
  void operator()(std::string_view name, std::string& bytes) {
    std::string text;
    object_.String(name, &text);
    bytes.clear();
    std::uint32_t code = 0;
    for (std::string_view rest = text; TakeUtf8(&rest, &code);) {
      if (code > UCHAR_MAX) {
        return object_.Refuse(fmt::format("has in {} a character that stands for no byte", name));
      }
      bytes.push_back(static_cast<char>(code));
    }
  }
  void operator()(std::string_view name, CoreSet& cores) {
    std::string text;
    (*this)(name, text);
    Result<CoreSet> parsed = ParseCores(text);
    if (!parsed.ok()) {
      return object_.Refuse(fmt::format("has wrong {}: {}", name, parsed.error().message));
    }
    cores = std::move(*parsed);
  }
  void operator()(std::string_view name, std::optional<Precision>& precision) {
    if (!object_.Has(name)) return;
    precision = ParsePrecision(object_.Text(name, {"bf16", "f32", "portable"}));
  }
  void operator()(std::string_view name, std::optional<KvFormat>& kv) {
    if (!object_.Has(name)) return;
    kv = ParseKvFormat(object_.Text(name, {"bf16", "f32", "q8_0"}));
  }
  void operator()(std::string_view name, std::optional<DraftWindow>& window) {
    if (!object_.Has(name)) return;
    Reader fields(object_.Child(name));
    ForEachFieldOfWindow(window.emplace(), fields);
    fields.Close();
  }

  void Close() { object_.Close(); }

 private:
  JsonObject object_;
};

}  // namespace

std::string WriteSpeculatorSetup(const SpeculatorSetup& setup) {
  Writer fields;
  ForEachField(setup, fields);
  return fields.text();
}

Result<SpeculatorSetup> ReadSpeculatorSetup(std::string_view text) {
  constexpr std::string_view kWhere = "the speculator's setup";
  FT_ASSIGN_OR_RETURN(const Json json, ParseJsonObject(text, kWhere));
  Status status;
  SpeculatorSetup setup;
  Reader fields(JsonObject(&json, std::string(kWhere), &status));
  ForEachField(setup, fields);
  fields.Close();
  if (!status.ok()) return status.error();
  return setup;
}

}  // namespace foretoken
