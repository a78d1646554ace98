// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/describe.h"

#include <cctype>
#include <iostream>

#include "app/arguments.h"
#include "app/cli.h"
#include "app/examples.h"
#include "planners/registry.h"

namespace hw::app {
namespace {

using core::Error;
using core::ErrorCode;

std::vector<const CLI::Option*> optionsOf(const CLI::App& command, bool positional) {
    std::vector<const CLI::Option*> found;
    for (const CLI::Option* option : command.get_options([](const CLI::Option*) { return true; }))
        if (option->get_positional() == positional) found.push_back(option);
    return found;
}

bool takesValue(const CLI::Option& option) {
    return option.get_items_expected_max() > 0;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
        text.replace(at, what.size(), by);
    return text;
}

/// "-o, --output", each as the shell takes it.
std::string namesOf(const CLI::Option& option, const std::string& between) {
    std::string names;
    const auto add = [&](const std::string& name) {
        names += (names.empty() ? "" : between) + name;
    };
    for (const std::string& name : option.get_snames()) add("-" + name);
    for (const std::string& name : option.get_lnames()) add("--" + name);
    return names;
}

std::string plannerNames() {
    std::string names;
    for (const planners::PlannerInfo& info : planners::plannerList())
        names += (names.empty() ? "" : " ") + std::string(info.name);
    return names;
}

/// The values that it may have, "a b c"; empty where they are not a list.
std::string valuesOf(const CLI::Option& option) {
    if (option.check_lname("planner") || option.check_lname("planners")) return plannerNames();
    if (option.check_lname("view")) return replaced(option.get_description(), ",", "");
    if (option.check_lname("preset")) return "column page slide";
    const std::string type = option.get_type_name();  // "TEXT:{a,b,c}"
    const auto begin = type.find('{'), end = type.rfind('}');
    if (begin == std::string::npos || end == std::string::npos) return "";
    return replaced(type.substr(begin + 1, end - begin - 1), ",", " ");
}

/// A command whose first word is a process.
bool takesProcess(const CLI::App& command) {
    const auto words = optionsOf(command, true);
    return !words.empty() && words.front()->get_name(true).starts_with("PID");
}

constexpr const char* kProcesses = "highwater ps 2>/dev/null | sed -n 's/^\\([0-9]*\\) .*/\\1/p'";

std::string roff(const std::string& text) {
    return replaced(replaced(text, "\\", "\\e"), "-", "\\-");
}

std::string manualEntry(const CLI::Option& option) {
    const bool positional = option.get_positional();
    std::string entry =
        ".TP\n.B " + roff(positional ? option.get_name(true) : namesOf(option, ", "));
    if (!positional && takesValue(option)) entry += " \\fIVALUE\\fR";
    return entry + "\n\\&" + roff(option.get_description()) + "\n";
}

std::string manualEntries(const CLI::App& command) {
    std::string entries;
    for (const bool positional : {true, false})
        for (const CLI::Option* option : optionsOf(command, positional))
            entries += manualEntry(*option);
    return entries;
}

std::string manualExamples(const CLI::App& command) {
    std::string examples;
    for (const std::string& example : examplesOf(command.get_name()))
        examples += ".PP\n.nf\n    " + roff(example) + "\n.fi\n";
    return examples;
}

/// The command and what is written behind it.
std::string synopsis(const CLI::App& command) {
    std::string words = command.get_name();
    for (const CLI::Option* option : optionsOf(command, true))
        words += " " + option->get_name(true);
    return roff(words);
}

std::string manualSection(const CLI::App& command) {
    return ".SS " + synopsis(command) + "\n\\&" + roff(command.get_description()) + ".\n" +
           manualEntries(command) + manualExamples(command);
}

constexpr const char* kExitStatus =
    ".SH EXIT STATUS\n"
    "0 done, 1 internal fault, 2 usage, 3 no plan fits, 4 unreadable input, 5 the program or its "
    "framework could not be used, 6 verification failed.\n";

std::string titleOf(const std::string& page) {
    return ".TH " + page +
           " 1 \"\" \"highwater " HIGHWATER_VERSION "\" \"User Commands\"\n.SH NAME\n";
}

std::string bash(const CLI::App& app) {
    std::string names, cases, values, processes;
    for (const CLI::App* command : commandsOf(app)) {
        names += command->get_name() + " ";
        std::string options;
        for (const CLI::Option* option : optionsOf(*command, false)) {
            options += (options.empty() ? "" : " ") + namesOf(*option, " ");
            if (const std::string known = valuesOf(*option); !known.empty())
                values += "        \"" + command->get_name() + " --" +
                          option->get_lnames().front() + "\") values=\"" + known + "\" ;;\n";
        }
        cases += "            " + command->get_name() + ") options=\"" + options + "\" ;;\n";
        if (takesProcess(*command))
            processes += (processes.empty() ? "" : "|") + command->get_name();
    }
    return "_highwater() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local options=\"" +
           names +
           "--help --version\"\n"
           "    local values=\n"
           "    case \"${COMP_WORDS[1]} $previous\" in\n" +
           values +
           "    esac\n"
           "    case \"${COMP_WORDS[1]}\" in " +
           processes + ") [ \"$COMP_CWORD\" = 2 ] && values=$(" + kProcesses +
           ") ;; esac\n"
           "    if [ -n \"$values\" ]; then\n"
           "        COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
           "        return\n"
           "    fi\n"
           "    if [ \"$COMP_CWORD\" -gt 1 ]; then\n"
           "        case ${COMP_WORDS[1]} in\n" +
           cases +
           "        esac\n"
           "    fi\n"
           "    if [ \"$COMP_CWORD\" = 1 ] || [[ $current == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
           "    fi\n"
           "}\n"
           "complete -o default -F _highwater highwater\n";
}

std::string quoted(const std::string& text) {
    return "'" + replaced(text, "'", "'\\''") + "'";
}

/// Square brackets and colons part what an argument of _arguments says.
std::string zshSaid(const std::string& text) {
    return replaced(replaced(replaced(text, "[", "("), "]", ")"), ":", "\\:");
}

std::string zsh(const CLI::App& app) {
    std::string commands, cases;
    for (const CLI::App* command : commandsOf(app)) {
        commands += "        " +
                    quoted(command->get_name() + ":" + zshSaid(command->get_description())) + "\n";
        cases += "        " + command->get_name() + ") _arguments";
        for (const CLI::Option* option : optionsOf(*command, false)) {
            const std::string known = valuesOf(*option);
            const std::string value = !takesValue(*option) ? ""
                                      : known.empty()
                                          ? ":value:_files"
                                          : ":value:(" + replaced(known, ":", "\\:") + ")";
            for (const std::string& name : option->get_lnames())
                cases +=
                    " \\\n            " +
                    quoted("--" + name + "[" + zshSaid(option->get_description()) + "]" + value);
        }
        cases += takesProcess(*command)
                     ? " \\\n            \"1:process:($(" + std::string(kProcesses) + "))\""
                     : "";
        cases += " \\\n            '*:file:_files' ;;\n";
    }
    return "#compdef highwater\n"
           "_highwater() {\n"
           "    local -a commands=(\n" +
           commands +
           "    )\n"
           "    if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
           "    local command=$words[2]\n"
           "    shift words; (( CURRENT-- ))\n"
           "    case $command in\n" +
           cases +
           "    esac\n"
           "}\n"
           "_highwater \"$@\"\n";
}

std::string fish(const CLI::App& app) {
    std::string text;
    for (const CLI::App* command : commandsOf(app)) {
        if (takesProcess(*command))
            text += "complete -c highwater -f -n '__fish_seen_subcommand_from " +
                    command->get_name() + "' -a \"(" + kProcesses + ")\"\n";
        text += "complete -c highwater -n __fish_use_subcommand -a " + command->get_name() +
                " -d " + quoted(command->get_description()) + "\n";
        for (const CLI::Option* option : optionsOf(*command, false)) {
            text += "complete -c highwater -n '__fish_seen_subcommand_from " + command->get_name() +
                    "'";
            for (const std::string& name : option->get_snames()) text += " -s " + name;
            for (const std::string& name : option->get_lnames()) text += " -l " + name;
            if (takesValue(*option)) text += " -r";
            if (const std::string known = valuesOf(*option); !known.empty())
                text += " -f -a " + quoted(known);
            text += " -d " + quoted(option->get_description()) + "\n";
        }
    }
    return text;
}

}  // namespace

std::vector<const CLI::App*> commandsOf(const CLI::App& app) {
    std::vector<const CLI::App*> shown;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        if (!command->get_group().empty()) shown.push_back(command);
    return shown;
}

std::string manualOf(const CLI::App& app) {
    std::string text =
        titleOf("HIGHWATER") +
        "highwater \\- see a training run's memory, plan it down, run the plan\n"
        ".SH SYNOPSIS\n.B highwater\n.br\n.B highwater \\fICOMMAND\\fR [\\fIARGUMENT\\fR]...\n"
        ".SH DESCRIPTION\n"
        "Records the memory of a neural network's training, layer by layer, tries "
        "rematerialization "
        "planners on the recorded step, and trains under the chosen plan. Without arguments the "
        "window opens. With \\-\\-json every command prints one JSON object.\n"
        ".SH COMMANDS\n";
    for (const CLI::App* command : commandsOf(app)) text += manualSection(*command);
    return text + kExitStatus +
           ".SH ENVIRONMENT\n"
           ".TP\n.B CXX\nThe compiler for what is compiled for the torch at hand (default: c++).\n"
           ".TP\n.B XDG_CACHE_HOME\nWhere that is kept, below highwater/capture (default: "
           "~/.cache).\n"
           ".TP\n.B HIGHWATER_CAPTURES\nAnother folder for compiled captures, which may be carried "
           "to "
           "machines without a compiler.\n"
           ".TP\n.B HIGHWATER_CUPTI\nThe libcupti.so to use.\n";
}

std::string manualOfCommand(const CLI::App& command) {
    const std::string name = "highwater-" + command.get_name();
    std::string title = name;
    for (char& letter : title) letter = static_cast<char>(std::toupper(letter));
    const std::string examples = manualExamples(command);
    return titleOf(roff(title)) + roff(name) + " \\- " + roff(command.get_description()) +
           "\n.SH SYNOPSIS\n.B highwater " + synopsis(command) + "\n.SH ARGUMENTS AND OPTIONS\n" +
           manualEntries(command) + (examples.empty() ? "" : ".SH EXAMPLES\n" + examples) +
           kExitStatus + ".SH SEE ALSO\n.BR highwater (1)\n";
}

std::string completionOf(const CLI::App& app, const std::string& shell) {
    return shell == "bash"   ? bash(app)
           : shell == "zsh"  ? zsh(app)
           : shell == "fish" ? fish(app)
                             : "";
}

void addCompletion(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "completion",
                               "Print what makes a shell complete commands and options");
    auto shell = std::make_shared<std::string>();
    command->add_option("SHELL", *shell, "bash, zsh or fish")->required();
    command->callback([&app, &common, shell] {
        const std::string text = completionOf(app, *shell);
        if (text.empty())
            common.exitCode = fail({ErrorCode::Usage, "no completion for '" + *shell + "'",
                                    "there is one for bash, zsh and fish"});
        else if (common.json)
            answerWith({{"shell", *shell}, {"text", text}});
        else
            std::cout << text;
    });
}

void addManual(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "manual", "Print the manual page, for `man -l -`");
    auto name = std::make_shared<std::string>();
    command->add_option("COMMAND", *name, "The page of this command alone");
    command->callback([&app, &common, name] {
        std::string text;
        if (name->empty()) text = manualOf(app);
        for (const CLI::App* each : commandsOf(app))
            if (*name == each->get_name()) text = manualOfCommand(*each);
        if (text.empty())
            common.exitCode = fail(
                {ErrorCode::Usage, "there is no command '" + *name + "'", hintFor(app, *name)});
        else if (common.json)
            answerWith({{"text", text}});
        else
            std::cout << text;
    });
}

}  // namespace hw::app
