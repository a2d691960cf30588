#include "apps/config_file.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <cstdlib>
#include <filesystem>

namespace vericache::apps {
namespace {

Result<std::string> TextOf(const toml::node& node, std::string_view key) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return std::string(flag->get() ? "true" : "false");
  return MakeError(ErrorCode::kInvalidArgument,
                   "line {}: '{}' must be a text, a number, true or false, or an array of these",
                   node.source().begin.line, key);
}

Status AddSetting(const std::string& command, std::string_view key, const toml::node& node,
                  std::vector<Setting>& settings) {
  Setting setting{command, std::string(key), {}, static_cast<int>(node.source().begin.line)};
  const toml::array* array = node.as_array();
  if (array != nullptr && array->empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "line {}: '{}' is an empty array; leave the key out for the default",
                     node.source().begin.line, key);
  }
  for (size_t i = 0; i < (array != nullptr ? array->size() : 1); ++i) {
    auto text = TextOf(array != nullptr ? (*array)[i] : node, key);
    VC_RETURN_IF_ERROR(text);
    setting.values.push_back(*std::move(text));
  }
  settings.push_back(std::move(setting));
  return {};
}

Status AddTable(const std::string& command, const toml::table& table,
                std::vector<Setting>& settings) {
  for (const auto& [key, node] : table) {
    const toml::table* inner = node.as_table();
    VC_RETURN_IF_ERROR(
        inner == nullptr
            ? AddSetting(command, key.str(), node, settings)
            : AddTable(fmt::format("{}{}{}", command, command.empty() ? "" : " ", key.str()),
                       *inner, settings));
  }
  return {};
}

}  // namespace

std::string ConfigPath() {
  std::filesystem::path folder;
  if (const char* given = std::getenv("XDG_CONFIG_HOME"); given != nullptr && *given != '\0') {
    folder = given;
  } else {
    const char* home = std::getenv("HOME");
    folder = std::filesystem::path(home != nullptr ? home : "/") / ".config";
  }
  return (folder / "vericache" / "config.toml").string();
}

Result<std::vector<Setting>> ParseConfig(std::string_view text) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return MakeError(ErrorCode::kInvalidArgument, "line {}: {}", parsed.error().source().begin.line,
                     parsed.error().description());
  }
  std::vector<Setting> settings;
  VC_RETURN_IF_ERROR(AddTable("", parsed.table(), settings));
  return settings;
}

}  // namespace vericache::apps
