// A program's command line: its commands, options and positionals, and their --help. CLI11 parses it. Its header takes
// ten seconds to compile, so only command_syntax.cc includes it. A library of its own (command_syntax_dep): programs
// without a command line do not link it.
//
// Read stores values through the references that were passed to AddFlag and AddOption, which must outlive it. A wrong
// command line never throws. A wrong syntax, such as a name used twice, throws when it is added.
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
  enum class Value { kAny, kPositive, kNonNegative, kExistingFile, kExistingFolder };
  struct Range {
    double least;
    double most;
  };

  std::string placeholder = {};  // what --help calls the value; empty: its type
  std::string if_bare = {};      // the value of the option without a value; empty: it needs one
  bool is_required = false;
  bool is_hidden = false;  // from --help and completion
  bool shows_default = false;
  Value value = Value::kAny;
  std::optional<Range> range = {};
};

struct OptionDescription {
  std::vector<std::string> names;  // "--follow", "-f"; empty for a pure positional
  std::string name;                // the first long name without dashes, or the positional's
  std::string help;
  std::string placeholder;
  bool is_positional = false;
  bool is_hidden = false;
  bool takes_value = false;
  bool needs_value = false;
  bool repeats = false;
};

struct CommandDescription {
  std::string name;
  std::string help;
  std::vector<OptionDescription> options;  // positionals, too
  std::vector<CommandDescription> commands;
  bool is_hidden = false;
};

// The result of reading a command line.
struct CommandReading {
  enum class Kind {
    kRead,   // all values are stored
    kShown,  // --help or --version: `text` is the answer
    kWrong,  // `text` says why, in one line
  };
  Kind kind;
  std::string text = {};
};

class CommandSyntax {
 public:
  // `name`: for --help; empty: argv[0].
  explicit CommandSyntax(const std::string& help, const std::string& name = {});
  ~CommandSyntax();
  CommandSyntax(const CommandSyntax&) = delete;
  CommandSyntax& operator=(const CommandSyntax&) = delete;

  // Names are separated by commas: "--follow,-f". A name without dashes makes the option a positional as well.
  void AddFlag(const std::string& names, bool& value, const std::string& help);
  void AddOption(const std::string& names, std::string& value, const std::string& help, const OptionForm& form = {});
  void AddOption(const std::string& names, std::uint32_t& value, const std::string& help, const OptionForm& form = {});
  void AddOption(const std::string& names, std::uint64_t& value, const std::string& help, const OptionForm& form = {});
  void AddOption(const std::string& names, int& value, const std::string& help, const OptionForm& form = {});
  void AddOption(const std::string& names, double& value, const std::string& help, const OptionForm& form = {});
  // May be repeated, and takes one value each time; a positional takes all words.
  void AddOption(const std::string& names, std::vector<std::string>& values, const std::string& help,
                 const OptionForm& form = {});

  // The command lives as long as this.
  CommandSyntax& AddCommand(const std::string& name, const std::string& help);
  // The same, but left out of --help and completion: an old name.
  CommandSyntax& AddHiddenCommand(const std::string& name, const std::string& help);
  // One of the commands must be given.
  void RequireCommand();
  // A command may be given, and options of this may follow it. Call it before the first AddCommand.
  void AllowCommand();
  void SetFooter(const std::string& text);
  void SetVersion(const std::string& text);  // of --version

  // `words`: without the program's name.
  CommandReading Read(std::vector<std::string> words);
  // For a program without commands. Returns the exit status if the help, or what is wrong, has been printed.
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
