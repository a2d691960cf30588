// vericache inspect: what a GGUF file holds, and what we make of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "apps/commands.h"
#include "apps/flags.h"
#include "apps/model_path.h"
#include "apps/output_file.h"
#include "apps/summary.h"
#include "kv/geometry.h"
#include "model/config.h"
#include "model/gguf_file.h"

namespace vericache::apps {
namespace {

constexpr size_t kShownCharacters = 72;
constexpr uint64_t kShownStrings = 3;

// One line of printable text: control characters escaped, long ones cut.
std::string Shortened(const std::string& text) {
  std::string shown;
  for (const char byte : text) {
    if (shown.size() >= kShownCharacters) {
      while (!shown.empty() && (static_cast<unsigned char>(shown.back()) & 0x80u) != 0)
        shown.pop_back();
      return fmt::format("\"{}...\" ({} bytes)", shown, text.size());
    }
    if (byte == '\n') {
      shown += "\\n";
    } else if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    } else {
      shown += byte;
    }
  }
  return "\"" + shown + "\"";
}

std::string ArrayText(const model::GgufFile& file, const std::string& key,
                      const model::GgufValue& value) {
  std::string text = fmt::format("[{}]", value.n_elements);
  if (value.type != model::GgufType::kString) return text;
  for (uint64_t i = 0; i < std::min(value.n_elements, kShownStrings); ++i) {
    const auto element = file.StringAt(key, i);
    if (!element) return text + " " + element.error().message;
    text += " " + Shortened(*element);
  }
  return value.n_elements > kShownStrings ? text + " ..." : text;
}

std::string ValueText(const model::GgufFile& file, const std::string& key,
                      const model::GgufValue& value) {
  if (value.is_array) return ArrayText(file, key, value);
  switch (value.type) {
    case model::GgufType::kString: {
      const auto text = file.String(key);
      return text ? Shortened(*text) : text.error().message;
    }
    case model::GgufType::kBool: {
      const auto flag = file.Bool(key);
      return flag ? (*flag ? "true" : "false") : flag.error().message;
    }
    case model::GgufType::kFloat32:
    case model::GgufType::kFloat64: {
      const auto number = file.Real(key);
      return number ? fmt::format("{:.9g}", *number) : number.error().message;
    }
    default: {
      const auto number = file.Integer(key);
      return number ? fmt::format("{}", *number) : number.error().message;
    }
  }
}

std::string TensorLines(const model::GgufFile& file) {
  std::string lines = fmt::format("\ntensors ({})\n", file.Tensors().size());
  for (const model::GgufTensor& tensor : file.Tensors()) {
    size_t n_dims = tensor.shape.size();
    while (n_dims > 1 && tensor.shape[n_dims - 1] == 1) --n_dims;
    const std::string shape = fmt::format(
        "{}", fmt::join(tensor.shape.begin(),
                        tensor.shape.begin() + static_cast<std::ptrdiff_t>(n_dims), ", "));
    lines += fmt::format("  {:<32} {:<6} {:>10}  [{}]\n", tensor.name,
                         model::GgmlTypeName(tensor.type), FormatBytes(tensor.n_bytes), shape);
  }
  return lines;
}

std::string ModelLines(const model::ModelConfig& config) {
  const size_t token_bytes = kv::FullKvBytesPerToken(config.Kv());
  return fmt::format(
      "\nmodel as understood\n"
      "  name                 {}\n"
      "  layers               {}\n"
      "  heads                {}, {} for K and V, of {}\n"
      "  width                {}, {} in between\n"
      "  vocabulary           {}\n"
      "  context              {}\n"
      "  RoPE                 base {}, {} dimensions, factor {}\n"
      "  full KV              {} per token, {} for the whole context\n",
      config.name, config.n_layers, config.n_heads, config.n_kv_heads, config.head_dim,
      config.n_embd, config.n_ffn, config.n_vocab, config.n_context, config.rope.base,
      config.rope.n_dims, config.rope.factor, FormatBytes(token_bytes),
      FormatBytes(token_bytes * static_cast<size_t>(config.n_context)));
}

Status InspectFile(const std::string& path_or_name) {
  const auto path = ResolveModelPath(path_or_name);
  if (!path) return tl::unexpected(path.error());
  const auto file = model::GgufFile::Open(*path);
  if (!file) return tl::unexpected(file.error());
  const int n_parts = file->PartCount();
  std::string text =
      fmt::format("{}: {}{}\n\nkeys ({})\n", *path, FormatBytes(file->SizeInBytes()),
                  n_parts == 1 ? "" : fmt::format(" in {} files", n_parts), file->Values().size());
  for (const auto& [key, value] : file->Values()) {
    text += fmt::format("  {:<42} {}\n", key, ValueText(*file, key, value));
  }
  const auto config = model::ReadConfig(*file);
  VC_RETURN_IF_ERROR(
      Print(stdout, text + TensorLines(*file) + (config ? ModelLines(*config) : "")));
  VC_RETURN_IF_ERROR(config);  // what keeps the file from being run
  return {};
}

int Inspect(const std::string& path_or_name) {
  const Status status = InspectFile(path_or_name);
  return status ? 0 : ReportError("inspect", status.error());
}

}  // namespace

void AddInspect(CLI::App& app, Chosen& chosen) {
  const auto file = std::make_shared<std::string>();
  CLI::App& command = AddCommand(app, "inspect", "shows what a GGUF file holds",
                                 [file, &chosen] { chosen = [file] { return Inspect(*file); }; });
  AddRequired(command, "FILE", "a GGUF file, or the name of a known model", *file);
}

}  // namespace vericache::apps
