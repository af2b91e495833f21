#include "common/command_syntax.h"

#include <algorithm>
#include <CLI/CLI.hpp>
#include <sstream>
#include <utility>

namespace xschedd {

struct CommandSyntax::State {
  std::unique_ptr<CLI::App> owned;  // by the outermost
  CLI::App* app;
  std::vector<std::unique_ptr<CommandSyntax>> commands = {};
};

namespace {

template <typename Value>
CLI::Option* Add(CLI::App& app, const std::string& names, Value& value, const std::string& help,
                 const OptionForm& form) {
  CLI::Option* const option = app.add_option(names, value, help);
  if (!form.placeholder.empty()) option->type_name(form.placeholder);
  if (!form.if_bare.empty()) option->expected(0, 1)->default_str(form.if_bare);
  if (form.is_required) option->required();
  if (form.is_hidden) option->group("");
  if (form.shows_default) option->capture_default_str();
  if (form.range) option->check(CLI::Range(form.range->least, form.range->most));
  switch (form.value) {
    case OptionForm::Value::kAny:
      break;
    case OptionForm::Value::kPositive:
      option->check(CLI::PositiveNumber);
      break;
    case OptionForm::Value::kNonNegative:
      option->check(CLI::NonNegativeNumber);
      break;
    case OptionForm::Value::kExistingFile:
      option->check(CLI::ExistingFile);
      break;
    case OptionForm::Value::kExistingFolder:
      option->check(CLI::ExistingDirectory);
      break;
  }
  return option;
}

// From CLI11 2.5 on it would make one paragraph of a table.
void KeepLines(auto& formatter) {
  if constexpr (requires { formatter.enable_footer_formatting(false); }) formatter.enable_footer_formatting(false);
}

OptionDescription DescribeOption(const CLI::Option& option) {
  OptionDescription description;
  for (const std::string& name : option.get_lnames())
    description.names.push_back("--" + name);
  for (const std::string& name : option.get_snames())
    description.names.push_back("-" + name);
  description.name = !option.get_lnames().empty() ? option.get_lnames().front() : option.get_name(true);
  description.help = option.get_description();
  description.placeholder = option.get_type_name();
  description.is_positional = option.get_positional();
  description.is_hidden = option.get_group().empty();
  description.takes_value = option.get_items_expected_max() > 0;
  description.needs_value = option.get_items_expected_min() > 0;
  description.repeats = option.get_items_expected_max() > 1;
  return description;
}

CommandDescription DescribeCommand(const CLI::App& app) {
  CommandDescription description{app.get_name(), app.get_description(), {}, {}, app.get_group().empty()};
  for (const CLI::Option* option : app.get_options({}))
    description.options.push_back(DescribeOption(*option));
  for (const CLI::App* command : app.get_subcommands({}))
    description.commands.push_back(DescribeCommand(*command));
  return description;
}

}  // namespace

CommandSyntax::CommandSyntax(const std::string& help, const std::string& name) {
  auto app = std::make_unique<CLI::App>(help, name);
  CLI::App* const outermost = app.get();
  state_ = std::make_unique<State>(State{std::move(app), outermost});
}

CommandSyntax::CommandSyntax(std::unique_ptr<State> state) : state_(std::move(state)) {}

CommandSyntax::~CommandSyntax() = default;

void CommandSyntax::AddFlag(const std::string& names, bool& value, const std::string& help) {
  state_->app->add_flag(names, value, help);
}

void CommandSyntax::AddOption(const std::string& names, std::string& value, const std::string& help,
                              const OptionForm& form) {
  Add(*state_->app, names, value, help, form);
}

void CommandSyntax::AddOption(const std::string& names, std::uint32_t& value, const std::string& help,
                              const OptionForm& form) {
  Add(*state_->app, names, value, help, form);
}

void CommandSyntax::AddOption(const std::string& names, std::uint64_t& value, const std::string& help,
                              const OptionForm& form) {
  Add(*state_->app, names, value, help, form);
}

void CommandSyntax::AddOption(const std::string& names, int& value, const std::string& help, const OptionForm& form) {
  Add(*state_->app, names, value, help, form);
}

void CommandSyntax::AddOption(const std::string& names, double& value, const std::string& help,
                              const OptionForm& form) {
  Add(*state_->app, names, value, help, form);
}

void CommandSyntax::AddOption(const std::string& names, std::vector<std::string>& values, const std::string& help,
                              const OptionForm& form) {
  CLI::Option* const option = Add(*state_->app, names, values, help, form);
  // An option takes one value each time; otherwise it would swallow the words that follow. A positional takes them all.
  option->allow_extra_args(option->get_positional());
}

CommandSyntax& CommandSyntax::AddCommand(const std::string& name, const std::string& help) {
  CLI::App* const app = state_->app->add_subcommand(name, help);
  // No make_unique: the constructor is private.
  state_->commands.push_back(
      std::unique_ptr<CommandSyntax>(new CommandSyntax(std::make_unique<State>(State{nullptr, app}))));
  return *state_->commands.back();
}

CommandSyntax& CommandSyntax::AddHiddenCommand(const std::string& name, const std::string& help) {
  CommandSyntax& command = AddCommand(name, help);
  command.state_->app->group("");
  return command;
}

void CommandSyntax::RequireCommand() {
  state_->app->require_subcommand(1);
}

void CommandSyntax::AllowCommand() {
  state_->app->require_subcommand(0, 1);
  state_->app->fallthrough();
}

void CommandSyntax::SetFooter(const std::string& text) {
  state_->app->footer(text);
  KeepLines(*state_->app->get_formatter());
}

void CommandSyntax::SetVersion(const std::string& text) {
  state_->app->set_version_flag("--version", text);
}

CommandReading CommandSyntax::Read(std::vector<std::string> words) {
  std::reverse(words.begin(), words.end());  // CLI11 reads a vector from its end
  try {
    state_->app->parse(words);
  } catch (const CLI::Success& asked) {
    std::ostringstream text;
    state_->app->exit(asked, text, text);
    return {CommandReading::Kind::kShown, text.str()};
  } catch (const CLI::ParseError& error) {
    return {CommandReading::Kind::kWrong, error.what()};
  }
  return {CommandReading::Kind::kRead};
}

std::optional<int> CommandSyntax::ReadOrPrint(int argc, char** argv) {
  try {
    state_->app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return state_->app->exit(error);
  }
  return std::nullopt;
}

bool CommandSyntax::WasGiven() const {
  return state_->app->parsed();
}

std::string CommandSyntax::GivenCommand() const {
  const std::vector<CLI::App*> given = state_->app->get_subcommands();
  return given.empty() ? std::string() : given.front()->get_name();
}

std::string CommandSyntax::Name() const {
  return state_->app->get_name();
}

CommandDescription CommandSyntax::Describe() const {
  return DescribeCommand(*state_->app);
}

}  // namespace xschedd
