#include "apps/foretoken/server/doors/doors.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "apps/foretoken/server/api/request_fields.h"

namespace foretoken::server {
namespace {

// What all of them read. `inputs`: the field with the texts.
void ReadInputs(FieldReader* fields, std::string_view inputs, ApiRequest* request) {
  request->kind = ApiKind::kCompletion;
  request->stop.max_tokens = 0;
  request->prompt_only = true;
  request->embedding.emplace();
  ReadPrompts(fields, inputs, &request->prompts, kMaxTexts);
  for (const ApiPrompt& prompt : request->prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    if (text != nullptr && text->empty()) fields->Refuse(inputs, "of texts that are not empty");
  }
  std::string pooling = "mean";
  fields->String("pooling", &pooling);
  if (pooling != "mean" && pooling != "last") fields->Refuse("pooling", "mean or last");
  if (pooling == "last") request->embedding->pooling = Pooling::kLast;
}

void ReadDimensions(FieldReader* fields, EmbeddingWish* wish) {
  int number = 0;
  if (fields->Int("dimensions", 1, std::numeric_limits<int>::max(), &number)) {
    wish->dimensions = number;
  }
}

Result<ApiRequest> ReadOpenAi(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [](FieldReader* fields, ApiRequest* request) {
    ReadInputs(fields, "input", request);
    std::string encoding = "float";
    fields->String("encoding_format", &encoding);
    if (encoding != "float" && encoding != "base64") {
      fields->Refuse("encoding_format", "float or base64");
    }
    request->embedding->base64 = encoding == "base64";
    ReadDimensions(fields, &*request->embedding);
    SkipFields(fields, {"user"});
  });
}

Result<ApiRequest> ReadOllama(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [](FieldReader* fields, ApiRequest* request) {
    ReadInputs(fields, "input", request);
    ReadDimensions(fields, &*request->embedding);
    // Options say how a model is loaded and sampled; a text that is too long is refused.
    SkipFields(fields, {"keep_alive", "options", "truncate"});
  });
}

Result<ApiRequest> ReadOllamaOld(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [](FieldReader* fields, ApiRequest* request) {
    ReadInputs(fields, "prompt", request);
    if (request->prompts.size() > 1) fields->Refuse("prompt", "one text; /api/embed takes several");
    SkipFields(fields, {"keep_alive", "options"});
  });
}

Result<ApiRequest> ReadLlamaCpp(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [](FieldReader* fields, ApiRequest* request) {
    ReadInputs(fields, fields->Has("content") ? "content" : "input", request);
    request->parse_special = true;
    int norm = 2;
    if (fields->Int("embd_normalize", -1, 1 << 15, &norm) && norm != 2) {
      fields->Refuse("embd_normalize", "2: embeddings of this server have length 1");
    }
  });
}

// Written as it goes: a JSON value would take many times the memory of its text.
void AppendNumbers(std::span<const float> values, std::string* out) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    *out += i == 0 ? "[" : ",";
    if (std::isfinite(values[i])) {
      fmt::format_to(std::back_inserter(*out), "{}", values[i]);
    } else {
      *out += "null";
    }
  }
  *out += "]";
}

// What a request's texts have become.
struct Answer {
  const ApiRequest& request;
  std::string model;
  std::vector<std::vector<float>> embeddings;
  RequestStats stats;  // All of them together; the times are those of the one that ended last.
};

void WriteOpenAi(const Answer& answer, std::string* out) {
  *out += R"({"object":"list","data":[)";
  for (std::size_t i = 0; i < answer.embeddings.size(); ++i) {
    if (i > 0) *out += ",";
    fmt::format_to(std::back_inserter(*out), R"({{"object":"embedding","index":{},"embedding":)",
                   i);
    if (answer.request.embedding->base64) {
      *out += '"' + Base64Floats(answer.embeddings[i]) + '"';
    } else {
      AppendNumbers(answer.embeddings[i], out);
    }
    *out += "}";
  }
  fmt::format_to(std::back_inserter(*out),
                 R"(],"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})",
                 Dump(answer.model), answer.stats.prompt_tokens, answer.stats.prompt_tokens);
}

void WriteOllama(const Answer& answer, std::string* out) {
  *out += R"({"model":)" + Dump(answer.model) + R"(,"embeddings":)";
  for (std::size_t i = 0; i < answer.embeddings.size(); ++i) {
    *out += i == 0 ? "[" : ",";
    AppendNumbers(answer.embeddings[i], out);
  }
  fmt::format_to(std::back_inserter(*out),
                 R"(],"total_duration":{},"load_duration":0,"prompt_eval_count":{}}})",
                 answer.stats.finished_ns - answer.stats.submitted_ns, answer.stats.prompt_tokens);
}

void WriteOllamaOld(const Answer& answer, std::string* out) {
  *out += R"({"embedding":)";
  AppendNumbers(answer.embeddings.front(), out);
  *out += "}";
}

// Each text has an array of vectors, as there is one for each token where nothing is pooled.
void WriteLlamaCpp(const Answer& answer, std::string* out) {
  for (std::size_t i = 0; i < answer.embeddings.size(); ++i) {
    *out += i == 0 ? "[" : ",";
    fmt::format_to(std::back_inserter(*out), R"({{"index":{},"embedding":[)", i);
    AppendNumbers(answer.embeddings[i], out);
    *out += "]}";
  }
  *out += "]";
}

// Keeps the embeddings until all are there.
template <void (*write)(const Answer&, std::string*)>
class EmbeddingsWriter final : public ReplyWriter {
 public:
  EmbeddingsWriter(const ApiRequest& request, ReplyHead head)
      : answer_{.request = request,
                .model = std::move(head.model),
                .embeddings = std::vector<std::vector<float>>(request.choices()),
                .stats = {}} {}

  static std::unique_ptr<ReplyWriter> Make(const ApiRequest& request, ReplyHead head,
                                           const Tokenizer*) {
    return std::make_unique<EmbeddingsWriter>(request, std::move(head));
  }

  void Start(std::span<const std::string>, std::string*) override {}

  void Add(Burst burst, std::string*) override {
    answer_.embeddings[burst.choice] = std::move(burst.embedding);
    if (!burst.ending.has_value()) return;
    answer_.stats.AddCounts(burst.ending->stats);
    answer_.stats.submitted_ns = burst.ending->stats.submitted_ns;
    answer_.stats.finished_ns = burst.ending->stats.finished_ns;
  }

  void End(std::string* out) override { write(answer_, out); }
  // Nothing streams.
  void Fail(const ApiError&, std::string*) const override {}

 private:
  Answer answer_;
};

}  // namespace

std::string Base64Floats(std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little);
  std::string text(values.size_bytes() / 3 * 4 + 5, '\0');  // The writer ends it with a zero.
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(values.data()),
                                     static_cast<int>(values.size_bytes()));
  text.resize(length);
  return text;
}

const Door& EmbeddingsDoor() {
  static constexpr Door kDoor = {.path = "/v1/embeddings",
                                 .id_prefix = "",
                                 .prompt = "input",
                                 .limit = "input",
                                 .read = ReadOpenAi,
                                 .writer = EmbeddingsWriter<WriteOpenAi>::Make,
                                 .error = OpenAiError};
  return kDoor;
}

const Door& OllamaEmbedDoor() {
  static const Door kDoor = {.path = "/api/embed",
                             .id_prefix = "",
                             .prompt = "input",
                             .limit = "input",
                             .read = ReadOllama,
                             .writer = EmbeddingsWriter<WriteOllama>::Make,
                             .error = OllamaChatDoor().error};
  return kDoor;
}

const Door& OllamaEmbeddingsDoor() {
  static const Door kDoor = {.path = "/api/embeddings",
                             .id_prefix = "",
                             .prompt = "prompt",
                             .limit = "prompt",
                             .read = ReadOllamaOld,
                             .writer = EmbeddingsWriter<WriteOllamaOld>::Make,
                             .error = OllamaChatDoor().error};
  return kDoor;
}

const Door& LlamaCppEmbeddingDoor() {
  static const Door kDoor = {.path = "/embedding",
                             .id_prefix = "",
                             .prompt = "content",
                             .limit = "content",
                             .read = ReadLlamaCpp,
                             .writer = EmbeddingsWriter<WriteLlamaCpp>::Make,
                             .error = LlamaCppDoor().error};
  return kDoor;
}

}  // namespace foretoken::server
