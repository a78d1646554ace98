// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/arguments.h"

#include <algorithm>
#include <cctype>
#include <iostream>
#include <numeric>
#include <regex>

#include "app/describe.h"

namespace hw::app {
namespace {

using Words = std::vector<std::string>;

/// Whether the next word is the value of this one.
bool takesNextWord(const CLI::App& command, const std::string& word) {
    if (word.find('=') != std::string::npos) return false;
    const CLI::Option* option = command.get_option_no_throw(word);
    return option != nullptr && option->get_items_expected_max() > 0;
}

Words::iterator firstOfProgram(const CLI::App& command, Words& arguments) {
    auto word = arguments.begin() + 1;
    while (word < arguments.end() && word->starts_with('-'))
        word += takesNextWord(command, *word) ? 2 : 1;
    return std::min(word, arguments.end());
}

/// Single letters to insert, remove, change or swap with the next (optimal string alignment).
std::size_t editDistance(const std::string& a, const std::string& b) {
    std::vector<std::vector<std::size_t>> of(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) of[i][0] = i;
    std::iota(of[0].begin(), of[0].end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i)
        for (std::size_t j = 1; j <= b.size(); ++j) {
            of[i][j] = std::min({of[i - 1][j] + 1, of[i][j - 1] + 1,
                                 of[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                of[i][j] = std::min(of[i][j], of[i - 2][j - 2] + 1);
        }
    return of.back().back();
}

/// A hint: which of the names was probably meant, and which help to read.
std::string likeOneOf(const Words& names, const std::string& word, const std::string& help) {
    std::string nearest;
    std::size_t least = word.size() / 2 + 1;
    for (const std::string& name : names)
        if (const std::size_t distance = editDistance(word, name); distance < least) {
            least = distance;
            nearest = name;
        }
    return nearest.empty() ? "see '" + help + "'"
                           : "did you mean '" + nearest + "'? See '" + help + "'";
}

}  // namespace

bool namesFile(const std::string& word) {
    return !word.starts_with('-') && word.find_first_of("./") != std::string::npos;
}

void askForHelp(const CLI::App& app, Words& arguments) {
    if (arguments.empty() || arguments.front() != "help") return;
    arguments.erase(arguments.begin());
    const auto isMeant = [&](const CLI::App* command) {
        return command->get_name() == arguments.front();
    };
    if (arguments.empty() || std::ranges::any_of(commandsOf(app), isMeant))
        arguments.emplace_back("--help");
}

Words takeProgram(const CLI::App& app, Words& arguments) {
    const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
    if (dashes != arguments.end()) {
        Words program(dashes + 1, arguments.end());
        arguments.erase(dashes, arguments.end());
        return program;
    }
    if (arguments.empty() || arguments.front() != "record") return {};
    const auto begin = firstOfProgram(*app.get_subcommand("record"), arguments);
    Words program(begin, arguments.end());
    arguments.erase(begin, arguments.end());
    const auto option = std::find_if(program.begin(), program.end(),
                                     [](const std::string& word) { return word.starts_with('-'); });
    if (option != program.end())
        std::cerr << "highwater: everything from '" << program.front() << "' on is the program's, '"
                  << *option << "' too (write -- before the program)\n";
    return program;
}

std::string hintFor(const CLI::App& app, const std::string& word) {
    Words names{"help"};
    for (const CLI::App* command : commandsOf(app)) names.push_back(command->get_name());
    return likeOneOf(names, word, "highwater --help");
}

core::Error inOurWords(const CLI::ParseError& error, const std::string& help) {
    const std::string text = error.what();
    const auto told = [&](const std::string& what, const std::string& hint = {}) {
        return core::Error{core::ErrorCode::Usage, what,
                           hint.empty() ? "see '" + help + "'" : hint};
    };
    const std::string option = text.substr(0, text.find(':'));
    std::smatch parts;
    if (error.get_name() == "ArgumentMismatch" && option.size() < text.size())
        return told(option + " needs a value");
    static const std::regex conversion("Could not convert: (\\S+) = ([^]*)");
    if (std::regex_match(text, parts, conversion))
        return told(parts[1].str() + ": '" + parts[2].str() + "' is not a whole number");
    static const std::regex choice("([^:]+): ([^]*) not in \\{([^}]*)\\}");
    if (std::regex_match(text, parts, choice)) {
        const std::string names = std::regex_replace(parts[3].str(), std::regex(","), ", ");
        return told(parts[1].str() + ": '" + parts[2].str() + "' is not a choice",
                    "choose from: " + names);
    }
    return told(text);
}

std::optional<core::Error> notKnown(const CLI::App& command, const Words& arguments) {
    const std::string help = "highwater " + command.get_name() + " --help";
    Words names, known;
    for (const CLI::Option* option : command.get_options([](const CLI::Option*) { return true; })) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
        for (const std::string& name : option->get_snames()) known.push_back("-" + name);
    }
    known.insert(known.end(), names.begin(), names.end());
    for (const std::string& word : arguments) {
        const std::string option = word.substr(0, word.find('='));
        const bool looksLikeOne = word.size() > 1 && word[0] == '-' && !std::isdigit(word[1]);
        if (looksLikeOne && std::ranges::find(known, option) == known.end())
            return core::Error{core::ErrorCode::Usage,
                               "'" + command.get_name() + "' has no option '" + option + "'",
                               likeOneOf(names, option, help)};
    }
    const Words extra = command.remaining();
    if (extra.empty()) return std::nullopt;
    return core::Error{core::ErrorCode::Usage, "'" + extra.front() + "' is one word too many",
                       "see '" + help + "'"};
}

}  // namespace hw::app
