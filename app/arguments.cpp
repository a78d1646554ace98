// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/arguments.h"

#include <algorithm>
#include <iostream>
#include <numeric>

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

}  // namespace

bool namesFile(const std::string& word) {
    return !word.starts_with('-') && word.find_first_of("./") != std::string::npos;
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

std::string nearestCommand(const CLI::App& app, const std::string& word) {
    std::string nearest;
    std::size_t least = word.size() / 2 + 1;
    for (const CLI::App* command : commandsOf(app))
        if (const std::size_t distance = editDistance(word, command->get_name());
            distance < least) {
            least = distance;
            nearest = command->get_name();
        }
    return nearest;
}

}  // namespace hw::app
