#include "apps/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace vericache::apps {
namespace {

// Text as roff takes it: what it means by a backslash, a hyphen that is one, and a line that
// begins with a control character.
std::string Roff(const std::string& text) {
  std::string roff;
  for (const char c : text) {
    const bool begins_line = roff.empty() || roff.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) roff += "\\&";
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";
    } else {
      roff += c;
    }
  }
  return roff;
}

std::string Capitals(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string FlagEntry(const FlagInfo& flag) {
  std::vector<std::string> names;
  for (const std::string& name : flag.names) names.push_back("\\fB" + Roff(name) + "\\fR");
  const std::string value = flag.value.empty() ? "" : " \\fI" + Roff(flag.value) + "\\fR";
  // Lines of the help stay lines.
  std::string help = Roff(flag.help);
  for (size_t at = help.find('\n'); at != std::string::npos; at = help.find('\n', at + 5)) {
    help.replace(at, 1, "\n.br\n");
  }
  return fmt::format(".TP\n{}{}\n{}\n", fmt::join(names, ", "), value, help);
}

std::string CommandSection(const CommandInfo& command) {
  std::string arguments = " [\\fIOPTIONS\\fR]";
  std::string entries;
  for (const FlagInfo& flag : command.flags) {
    if (flag.names.empty()) arguments += " \\fI" + Roff(flag.value) + "\\fR";
    entries += flag.names.empty()
                   ? fmt::format(".TP\n\\fI{}\\fR\n{}\n", Roff(flag.value), Roff(flag.help))
                   : FlagEntry(flag);
  }
  const std::string section = command.name.empty() ? "options" : "vericache " + command.name;
  std::string page = fmt::format(".SH \"{}\"\n", Roff(Capitals(section)));
  if (!command.name.empty()) {
    page += fmt::format("\\fBvericache {}\\fR{}\n.PP\n{}.\n", Roff(command.name), arguments,
                        Roff(command.help));
  }
  page += entries;
  if (!command.footer.empty()) page += fmt::format(".PP\n.nf\n{}\n.fi\n", Roff(command.footer));
  return page;
}

std::vector<std::string> FlagNames(const CommandInfo& command) {
  std::vector<std::string> names;
  for (const FlagInfo& flag : command.flags) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  return names;
}

bool NamesFile(const FlagInfo& flag) {
  return flag.value == "FILE" || flag.value == "MODEL" || flag.value == "LOG";
}

// What may follow a flag: its choices, a file, or nothing that a shell could know.
std::string ValueCases(const CommandInfo& command) {
  std::string cases;
  for (const FlagInfo& flag : command.flags) {
    if (flag.names.empty() || flag.value.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : flag.names) {
      patterns.push_back(fmt::format("\"{}:{}\"", command.name, name));
    }
    const std::string action = !flag.choices.empty()
                                   ? fmt::format("words=\"{}\"", fmt::join(flag.choices, " "))
                               : NamesFile(flag) ? "files=1"
                                                 : "return";
    cases += fmt::format("    {}) {} ;;\n", fmt::join(patterns, "|"), action);
  }
  return cases;
}

bool TakesFile(const CommandInfo& command) {
  return std::any_of(command.flags.begin(), command.flags.end(),
                     [](const FlagInfo& flag) { return flag.names.empty() && NamesFile(flag); });
}

// The last word of each command that is called behind `name`.
std::vector<std::string> CommandsBehind(const std::string& name,
                                        const std::vector<CommandInfo>& commands) {
  const std::string before = name.empty() ? "" : name + " ";
  std::vector<std::string> words;
  for (const CommandInfo& command : commands) {
    if (command.name.size() <= before.size() || !command.name.starts_with(before)) continue;
    const std::string word = command.name.substr(before.size());
    if (word.find(' ') == std::string::npos) words.push_back(word);
  }
  return words;
}

}  // namespace

std::string ManualPage(const std::vector<CommandInfo>& commands, const std::string& version) {
  const CommandInfo& root = commands.front();
  std::string page = fmt::format(
      ".TH VERICACHE 1 \"\" \"vericache {}\" \"User Commands\"\n"
      ".SH NAME\nvericache \\- {}\n.SH SYNOPSIS\n",
      Roff(version), Roff(root.help));
  for (const CommandInfo& command : commands) {
    if (command.name.empty()) continue;
    page += fmt::format(".B vericache {}\n\\- {}\n.br\n", Roff(command.name), Roff(command.help));
  }
  for (const CommandInfo& command : commands) page += CommandSection(command);
  return page;
}

std::string BashCompletion(const std::vector<CommandInfo>& commands) {
  std::vector<std::string> names;
  std::string values;
  std::string flags;
  for (const CommandInfo& command : commands) {
    if (!command.name.empty()) names.push_back(fmt::format("\"{}\"", command.name));
    values += ValueCases(command);
  }
  for (const CommandInfo& command : commands) {
    std::vector<std::string> words = CommandsBehind(command.name, commands);
    const std::vector<std::string> its_flags = FlagNames(command);
    words.insert(words.end(), its_flags.begin(), its_flags.end());
    flags += fmt::format("    \"{}\") words=\"{}\"{} ;;\n", command.name, fmt::join(words, " "),
                         TakesFile(command) ? "; [[ $current == -* ]] || files=1" : "");
  }
  return fmt::format(
      "# bash completion of vericache; source <(vericache help --completion bash)\n"
      "_vericache() {{\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" command= words= files= word called\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    called=\"${{command:+$command }}$word\"\n"
      "    case \"$called\" in {}) command=\"$called\" ;; esac\n"
      "  done\n"
      "  COMPREPLY=()\n"
      "  case \"$command:${{COMP_WORDS[COMP_CWORD-1]}}\" in\n{}  esac\n"
      "  [[ -n $words$files ]] || case \"$command\" in\n{}  esac\n"
      "  if [[ -n $files ]]; then\n"
      "    compopt -o filenames 2>/dev/null\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
      "  else\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
      "  fi\n"
      "}}\n"
      "complete -F _vericache vericache\n",
      fmt::join(names, "|"), values, flags);
}

}  // namespace vericache::apps
