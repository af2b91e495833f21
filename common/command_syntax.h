// What may stand on a program's command line, and what --help says of it: commands, options, positionals. CLI11 reads
// it; its header costs each file that includes it ten seconds of compiling, so that command_syntax.cc alone does.
// Built apart (command_syntax_dep), so that who reads no command line does not have it.
//
// What is read is put where the caller said; these places, and the syntax itself, outlive Read. Nothing is thrown on a
// wrong command line; a wrong syntax, such as a name given twice, ends in an exception when it is made.
// Thread rule: one user at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace xschedd {

// How an option is read and shown, beyond its name.
struct OptionForm {
  enum class Value { kAny, kPositive, kExistingFile, kExistingFolder };
  struct Range {
    int least;
    int most;
  };

  std::string placeholder = {};  // what --help calls the value; empty: by its type
  std::string if_bare = {};      // the value where the option stands without one; empty: it must have one
  bool is_required = false;
  bool is_hidden = false;  // from --help and completion
  bool shows_default = false;
  Value value = Value::kAny;
  std::optional<Range> range = {};
};

struct OptionDescription {
  std::vector<std::string> names;  // "--follow", "-f"; of a mere positional none
  std::string name;                // the first long name without dashes, or the positional's
  std::string help;
  std::string placeholder;
  bool is_positional = false;
  bool is_hidden = false;
  bool takes_value = false;
  bool needs_value = false;  // false: or may stand without one
  bool repeats = false;
};

struct CommandDescription {
  std::string name;
  std::string help;
  std::vector<OptionDescription> options;  // positionals, too
  std::vector<CommandDescription> commands;
  bool is_hidden = false;
};

// What became of the words of a command line.
struct CommandReading {
  enum class Kind {
    kRead,   // the places have their values
    kShown,  // --help or --version: `text` is the answer
    kWrong,  // `text` says why, in one line
  };
  Kind kind;
  std::string text = {};
};

class CommandSyntax {
 public:
  // `name`: empty where --help is to say what argv[0] says.
  explicit CommandSyntax(const std::string& help, const std::string& name = {});
  ~CommandSyntax();
  CommandSyntax(const CommandSyntax&) = delete;
  CommandSyntax& operator=(const CommandSyntax&) = delete;

  // Names are separated by commas: "--follow,-f"; one without dashes may stand without its name, as a positional.
  void AddFlag(const std::string& names, bool& value, const std::string& help);
  void AddOption(const std::string& names, std::string& value, const std::string& help, const OptionForm& form = {});
  void AddOption(const std::string& names, std::uint32_t& value, const std::string& help, const OptionForm& form = {});
  void AddOption(const std::string& names, std::uint64_t& value, const std::string& help, const OptionForm& form = {});
  void AddOption(const std::string& names, int& value, const std::string& help, const OptionForm& form = {});
  void AddOption(const std::string& names, double& value, const std::string& help, const OptionForm& form = {});
  // May be repeated, and takes one value each time; a positional takes all words.
  void AddOption(const std::string& names, std::vector<std::string>& values, const std::string& help,
                 const OptionForm& form = {});

  // The command is valid for as long as this.
  CommandSyntax& AddCommand(const std::string& name, const std::string& help);
  // Likewise, but neither in --help nor in completion: an old name.
  CommandSyntax& AddHiddenCommand(const std::string& name, const std::string& help);
  // One of the commands must be given.
  void RequireCommand();
  // One may be given, and what is added to this may stand behind it, too. Before the first AddCommand.
  void AllowCommand();
  void SetFooter(const std::string& text);
  void SetVersion(const std::string& text);  // of --version

  // `words`: without the program's name.
  CommandReading Read(std::vector<std::string> words);
  // For a program without commands: the status to end with, where --help was asked for or the command line is wrong and
  // either has been printed.
  std::optional<int> ReadOrPrint(int argc, char** argv);

  // After Read.
  bool WasGiven() const;
  std::string GivenCommand() const;  // empty: none

  std::string Name() const;
  CommandDescription Describe() const;

 private:
  struct State;
  explicit CommandSyntax(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace xschedd
